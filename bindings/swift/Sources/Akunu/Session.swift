import CAkunu
import Dispatch
import Foundation

/// A text that is read and goes on in turns. What is computed of it stays in the model's cache as long as there is
/// room: only what is new is read.
///
/// ```swift
/// let session = try Session(model)
/// try session.append(model.tokenizer.encode("The sea is"))
/// print(try await session.generate(GenerateOptions(maxTokens: 32)).text())
/// ```
///
/// Any thread may use it; while it generates, other calls throw `.busy`.
public final class Session: Sendable {
  private let model: Model
  private let handle: Handle

  public init(_ model: Model) throws(AkunuError) {
    self.model = model
    handle = try Handle(close: { akunu_close_session($0) }) { akunu_open_session(model.handle.raw, $0) }
  }

  private init(_ model: Model, _ handle: Handle) {
    self.model = model
    self.handle = handle
  }

  /// A session from a file that `save` or the Python package wrote.
  ///
  /// - Returns: the session, and how many of its tokens need not be read again.
  /// - Throws: `.file` for that of another model, cache type or layout, and for a damaged one.
  public static func load(
    _ path: String, for model: Model
  ) async throws(AkunuError) -> (session: Session, restored: Int) {
    try await waiting { () throws(AkunuError) in
      var restored = 0
      let handle = try withCStrings([path]) { strings throws(AkunuError) in
        try Handle(close: { akunu_close_session($0) }) {
          akunu_load_session(model.handle.raw, strings[0], $0, &restored)
        }
      }
      return (Session(model, handle), restored)
    }
  }

  /// Writes it to a file with its keys and values, whole or not at all.
  public func save(to path: String) async throws(AkunuError) {
    try await waiting { () throws(AkunuError) in
      try withCStrings([path]) { strings throws(AkunuError) in
        try check(akunu_save_session(self.handle.raw, strings[0]))
      }
    }
  }

  public var tokens: [UInt32] {
    get throws(AkunuError) {
      try filled(UInt32.self, guess: 1024) { akunu_get_session_tokens(handle.raw, $0, $1, $2) }
    }
  }

  /// Tokens behind those that are there.
  ///
  /// - Throws: `.context` where they do not fit.
  public func append(_ tokens: [UInt32]) throws(AkunuError) {
    try check(akunu_append(handle.raw, tokens, tokens.count))
  }

  /// Forgets all tokens but the first `count`; 0 begins anew.
  public func rewind(to count: Int) throws(AkunuError) {
    guard count >= 0 else { throw .argument("count is \(count), expected 0 or more") }
    try check(akunu_rewind(handle.raw, count))
  }

  /// Another session that goes on from here, on its own; what is cached serves both.
  public func fork() throws(AkunuError) -> Session {
    Session(model, try Handle(close: { akunu_close_session($0) }) { akunu_fork_session(handle.raw, $0) })
  }

  /// Goes on from the session's tokens; what comes out is appended, but not a stop token. The session is `busy` until
  /// the text is over. A thread waits for it, and cancelling takes effect with the next token.
  ///
  /// - Throws: `.busy`. What else is wrong, the pieces throw, and the session is as it was.
  public func generate(_ options: GenerateOptions = GenerateOptions()) throws(AkunuError) -> Generation {
    let last = try tokens.last
    let (pieces, continuation) = AsyncThrowingStream<Piece, any Error>.makeStream()
    let turn = Turn(TextPieces(try model.tokenizer, after: last), continuation)
    continuation.onTermination = { reason in
      if case .cancelled = reason { turn.cancel() }
    }
    let handle = handle
    DispatchQueue.global(qos: .userInitiated).async { turn.run(handle, options) }
    return Generation(pieces, turn)
  }
}

/// A session's text under way. Unchecked: `pieces` and `failure` are the running thread's, the rest is behind the lock.
private final class Turn: Generation.Source, @unchecked Sendable {
  private var pieces: TextPieces
  private var failure: AkunuError?
  private let continuation: AsyncThrowingStream<Piece, any Error>.Continuation

  private let lock = NSLock()
  private var isCancelled = false
  private var known = akunu_generation_stats()

  init(_ pieces: TextPieces, _ continuation: AsyncThrowingStream<Piece, any Error>.Continuation) {
    self.pieces = pieces
    self.continuation = continuation
  }

  func cancel() { lock.withLock { isCancelled = true } }

  func stats() -> GenerationStats { GenerationStats(lock.withLock { known }) }

  func run(_ session: Handle, _ options: GenerateOptions) {
    do {
      var stats = akunu_generation_stats()
      stats.size = MemoryLayout<akunu_generation_stats>.size
      try options.call { options throws(AkunuError) in
        try check(
          akunu_continue(
            session.raw, options,
            { token, _, _, turn in Unmanaged<Turn>.fromOpaque(turn!).takeUnretainedValue().take(token) },
            Unmanaged.passUnretained(self).toOpaque(), &stats))
      }
      lock.withLock { known = stats }
      if let failure { throw failure }
      let rest = try pieces.finish()
      if !rest.isEmpty { continuation.yield(Piece(token: nil, text: rest)) }
      continuation.finish()
    } catch {
      continuation.finish(throwing: error)
    }
  }

  /// Whether more is wanted.
  private func take(_ token: UInt32) -> Bool {
    do {
      continuation.yield(Piece(token: token, text: try pieces.push(token)))
      return lock.withLock { !isCancelled }
    } catch {
      failure = error
      return false
    }
  }
}
