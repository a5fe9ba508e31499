// What every call of the C library needs: statuses become errors, buffers arrays, and Swift's texts C strings.
import CAkunu
import Dispatch

/// Throws what the library says of a call of this thread that just failed.
func check(_ status: akunu_status) throws(AkunuError) {
  guard status != AKUNU_OK else { return }
  throw AkunuError(status, String(cString: akunu_last_error()))
}

/// A handle of the library, closed when this object goes. Handles are numbers: the library refuses one
/// that is closed and never gives a number twice, so that any thread may use or close it at any time.
final class Handle: Sendable {
  private let number: UInt
  private let end: @Sendable (OpaquePointer?) -> akunu_status

  /// Of what `open` writes, closed by `close`.
  init(
    close: @escaping @Sendable (OpaquePointer?) -> akunu_status,
    open: (UnsafeMutablePointer<OpaquePointer?>) -> akunu_status
  ) throws(AkunuError) {
    var opened: OpaquePointer?
    try check(open(&opened))
    number = UInt(bitPattern: opened)
    end = close
  }

  deinit { _ = end(raw) }

  /// Closes it now; once more is nothing.
  func close() { _ = end(raw) }

  var raw: OpaquePointer? { OpaquePointer(bitPattern: number) }
}

/// What a function writes into a buffer, which is made larger until it fits. `guess` is tried first.
func filled<Number: BitwiseCopyable>(
  _: Number.Type, guess: Int,
  by call: (UnsafeMutablePointer<Number>?, Int, UnsafeMutablePointer<Int>) -> akunu_status
) throws(AkunuError) -> [Number] {
  var capacity = max(guess, 1)
  while true {
    var length = 0
    var status = AKUNU_OK
    let numbers = [Number](unsafeUninitializedCapacity: capacity) { buffer, written in
      status = call(buffer.baseAddress, capacity, &length)
      written = status == AKUNU_OK ? length : 0
    }
    guard status == AKUNU_ERROR_SPACE else {
      try check(status)
      return numbers
    }
    capacity = length + 1  // of text, with the zero byte
  }
}

/// Likewise of text.
func filledText(
  guess: Int = 256,
  by call: (UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>) -> akunu_status
) throws(AkunuError) -> String {
  let characters = try filled(CChar.self, guess: guess, by: call)
  return characters.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
}

/// Calls `body` with C strings that live as long as the call; of no text, with none. A zero byte would
/// end a C string before its end, and is refused.
func withCStrings<Value>(
  _ texts: [String?], _ body: ([UnsafePointer<CChar>?]) throws(AkunuError) -> Value
) throws(AkunuError) -> Value {
  for case let text? in texts where text.utf8.contains(0) {
    throw .argument("a text holds a zero byte, with which a text of C ends: \(text.debugDescription)")
  }
  let copies = texts.map { text -> UnsafeMutableBufferPointer<CChar>? in
    guard let text else { return nil }
    let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: text.utf8.count + 1)
    _ = copy.initialize(from: text.utf8CString)
    return copy
  }
  defer { copies.forEach { $0?.deallocate() } }
  return try body(copies.map { UnsafePointer($0?.baseAddress) })
}

/// Calls `body` with a copy of plain values that lives as long as the call. (`withUnsafeBufferPointer` of Swift 6.0 knows
/// no typed errors.)
func lend<Element: BitwiseCopyable, Value>(
  _ elements: [Element], _ body: (UnsafePointer<Element>?) throws(AkunuError) -> Value
) throws(AkunuError) -> Value {
  let copy = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
  defer { copy.deallocate() }
  _ = copy.initialize(from: elements)
  return try body(UnsafePointer(copy.baseAddress))
}

/// A count of Swift's as one of the library's; `name` is for the error.
func count32(_ count: Int, _ name: String) throws(AkunuError) -> UInt32 {
  guard let number = UInt32(exactly: count) else {
    throw .argument("\(name) is \(count), expected 0 to \(UInt32.max)")
  }
  return number
}

/// Runs what takes long on a thread that may wait, which those of Swift's tasks may not.
func waiting<Value: Sendable>(
  for work: @escaping @Sendable () throws(AkunuError) -> Value
) async throws(AkunuError) -> Value {
  let result: Result<Value, AkunuError> = await withCheckedContinuation { continuation in
    DispatchQueue.global(qos: .userInitiated).async {
      continuation.resume(returning: Result { () throws(AkunuError) in try work() })
    }
  }
  return try result.get()
}

/// The text in an array of C's characters, which Swift has as a tuple.
func text<Characters>(of characters: Characters) -> String {
  withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}
