import CAkunu
import Dispatch

/// What came of a text since the last piece.
public struct Piece: Sendable, Hashable {
  /// One token; none in a last piece that only says that a character stayed unfinished.
  public let token: UInt32?
  /// The text that is complete with it, often none.
  public let text: String
}

/// Why a text ended, or speech: `stop` where all of it was heard.
public enum Finish: Sendable, Hashable {
  case stop, length, cancelled

  init?(_ finish: akunu_finish) {
    switch finish {
    case AKUNU_FINISH_STOP: self = .stop
    case AKUNU_FINISH_LENGTH: self = .length
    case AKUNU_FINISH_CANCELLED: self = .cancelled
    default: return nil
    }
  }
}

/// What a text took.
public struct GenerationStats: Sendable, Hashable {
  /// `nil`: it is under way.
  public let finish: Finish?
  public let promptTokens: Int
  /// Those of the prompt that were in the cache.
  public let cachedTokens: Int
  public let completionTokens: Int
  public let draftedTokens: Int
  /// From the request to the first token.
  public let promptSeconds: Double
  /// From the first token to the last.
  public let completionSeconds: Double

  init(_ stats: akunu_generation_stats) {
    finish = Finish(stats.finish)
    promptTokens = Int(stats.prompt_tokens)
    cachedTokens = Int(stats.cached_tokens)
    completionTokens = Int(stats.completion_tokens)
    draftedTokens = Int(stats.drafted_tokens)
    promptSeconds = stats.prompt_seconds
    completionSeconds = stats.completion_seconds
  }
}

/// A text under way: a sequence of pieces, which one task reads once.
///
/// The text is cancelled when the task that reads it is cancelled (the loop then ends without an error), when the
/// loop is left early, when nobody holds this object or its pieces any more, and by `cancel`. No thread waits for it.
public final class Generation: AsyncSequence, Sendable {
  /// Errors are `AkunuError`.
  public let pieces: AsyncThrowingStream<Piece, any Error>
  private let source: any Source

  /// Of a text that `akunu_start` began.
  convenience init(_ started: Handle, _ text: TextPieces) throws(AkunuError) {
    var descriptor: Int32 = -1
    try check(akunu_get_descriptor(started.raw, &descriptor))
    let (pieces, continuation) = AsyncThrowingStream<Piece, any Error>.makeStream()
    Reader.read(started, descriptor, text, continuation)
    self.init(pieces, Started(handle: started))
  }

  init(_ pieces: AsyncThrowingStream<Piece, any Error>, _ source: any Source) {
    self.pieces = pieces
    self.source = source
  }

  public func makeAsyncIterator() -> AsyncThrowingStream<Piece, any Error>.AsyncIterator {
    pieces.makeAsyncIterator()
  }

  /// All of the text, once it is over.
  public func text() async throws -> String {
    var text = ""
    for try await piece in pieces { text += piece.text }
    return text
  }

  /// All of its tokens, once it is over.
  public func tokens() async throws -> [UInt32] {
    var tokens: [UInt32] = []
    for try await piece in pieces { if let token = piece.token { tokens.append(token) } }
    return tokens
  }

  /// The text ends as soon as the step under way has; pieces that are there still come.
  public func cancel() { source.cancel() }

  public var stats: GenerationStats { get throws(AkunuError) { try source.stats() } }

  /// Where the pieces come from.
  protocol Source: Sendable {
    func cancel()
    func stats() throws(AkunuError) -> GenerationStats
  }

  private struct Started: Source {
    let handle: Handle

    func cancel() { _ = akunu_cancel(handle.raw) }

    func stats() throws(AkunuError) -> GenerationStats {
      var stats = akunu_generation_stats()
      stats.size = MemoryLayout<akunu_generation_stats>.size
      try check(akunu_get_stats(handle.raw, &stats))
      return GenerationStats(stats)
    }
  }
}

/// Takes tokens whenever the text's descriptor says that there are some. It lives until the text is over, and with
/// it the handle, to which the descriptor belongs.
///
/// Unchecked: everything that changes is touched on the source's own queue alone.
private final class Reader: @unchecked Sendable {
  private let handle: Handle
  private let continuation: AsyncThrowingStream<Piece, any Error>.Continuation
  private let source: any DispatchSourceRead
  private var pieces: TextPieces
  private var buffer = [UInt32](repeating: 0, count: 64)

  static func read(
    _ handle: Handle, _ descriptor: Int32, _ pieces: TextPieces,
    _ continuation: AsyncThrowingStream<Piece, any Error>.Continuation
  ) {
    let reader = Reader(handle, descriptor, pieces, continuation)
    // The source keeps the reader until it is cancelled.
    reader.source.setEventHandler { reader.take() }
    continuation.onTermination = { reason in
      if case .cancelled = reason { _ = akunu_cancel(handle.raw) }
    }
    reader.source.resume()
  }

  private init(
    _ handle: Handle, _ descriptor: Int32, _ pieces: TextPieces,
    _ continuation: AsyncThrowingStream<Piece, any Error>.Continuation
  ) {
    self.handle = handle
    self.pieces = pieces
    self.continuation = continuation
    source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: DispatchQueue(label: "akunu.generation"))
  }

  private func take() {
    do {
      var count = 0
      var finish = AKUNU_FINISH_NONE
      try check(akunu_take(handle.raw, 0, &buffer, buffer.count, &count, &finish))
      for token in buffer[..<count] {
        continuation.yield(Piece(token: token, text: try pieces.push(token)))
      }
      guard finish != AKUNU_FINISH_NONE, count < buffer.count else { return }
      let rest = try pieces.finish()
      if !rest.isEmpty { continuation.yield(Piece(token: nil, text: rest)) }
      continuation.finish()
    } catch {
      continuation.finish(throwing: error)
    }
    source.cancel()
  }
}
