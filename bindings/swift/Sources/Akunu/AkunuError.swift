import CAkunu
import Foundation

/// Why a call failed: the status of the C library, and its sentence, which says what, where, and what to do.
///
/// ```swift
/// do {
///   _ = try Model("missing.gguf")
/// } catch {
///   switch error {
///   case .argument(let why): print("no such file? \(why)")
///   default: print(error)
///   }
/// }
/// ```
public enum AkunuError: Error, Hashable, Sendable {
  /// An argument makes no sense, or names no file.
  case argument(String)
  /// The model was closed.
  case handle(String)
  /// A file contradicts its format.
  case file(String)
  /// Sound, but akunu does not have it.
  case unsupported(String)
  /// The device refused or failed.
  case device(String)
  /// There is not enough memory.
  case memory(String)
  /// The prompt and what shall follow do not fit into the context.
  case context(String)
  /// As many requests wait as may, or a session is in use.
  case busy(String)
  /// A mistake of akunu's, please report it; or a status that this package is too old to know.
  case `internal`(String)

  /// Of a status that is not `AKUNU_OK`.
  init(_ status: akunu_status, _ why: String) {
    switch status {
    case AKUNU_ERROR_ARGUMENT: self = .argument(why)
    case AKUNU_ERROR_HANDLE: self = .handle(why)
    case AKUNU_ERROR_FILE: self = .file(why)
    case AKUNU_ERROR_UNSUPPORTED: self = .unsupported(why)
    case AKUNU_ERROR_DEVICE: self = .device(why)
    case AKUNU_ERROR_MEMORY: self = .memory(why)
    case AKUNU_ERROR_CONTEXT: self = .context(why)
    case AKUNU_ERROR_BUSY: self = .busy(why)
    // AKUNU_ERROR_SPACE does not leave `filled`, which makes room.
    default: self = .internal("\(String(cString: akunu_status_name(status))): \(why)")
    }
  }

  /// The sentence.
  public var message: String {
    switch self {
    case .argument(let why), .handle(let why), .file(let why), .unsupported(let why), .device(let why),
      .memory(let why), .context(let why), .busy(let why), .internal(let why):
      return why
    }
  }
}

extension AkunuError: CustomStringConvertible, LocalizedError {
  public var description: String { message }
  public var errorDescription: String? { message }
}
