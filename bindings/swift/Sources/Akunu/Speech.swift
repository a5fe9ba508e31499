import CAkunu
import Dispatch
import Foundation

/// A stretch of speech.
public struct Segment: Sendable, Hashable {
  /// Counted from 0.
  public let id: Int
  /// Seconds from the beginning of the audio.
  public let start: Double
  public let end: Double
  public let text: String
  /// Timestamps among them.
  public let tokens: [UInt32]
  /// Given or detected: `"en"`.
  public let language: String
  /// 1 where the language was given.
  public let languageProbability: Double
  /// What the window of 30 seconds was heard with; 0: greedily.
  public let temperature: Double
  /// The mean of the window's tokens.
  public let averageLogProbability: Double
  /// Of the window's text: above 2.4, it repeats itself.
  public let compressionRatio: Double
  /// How probable it is that nobody speaks in the window.
  public let noSpeechProbability: Double

  init(_ segment: akunu_segment) {
    id = Int(segment.id)
    (start, end) = (segment.start, segment.end)
    text = String(
      decoding: UnsafeRawBufferPointer(start: segment.text, count: segment.text_length), as: UTF8.self)
    tokens = Array(UnsafeBufferPointer(start: segment.tokens, count: segment.n_tokens))
    language = String(cString: segment.language)
    languageProbability = segment.language_probability
    temperature = segment.temperature
    averageLogProbability = segment.avg_logprob
    compressionRatio = segment.compression_ratio
    noSpeechProbability = segment.no_speech_prob
  }
}

/// What a transcription took.
public struct TranscriptionStats: Sendable, Hashable {
  /// `nil`: it is under way.
  public let finish: Finish?
  /// `""`: nothing was heard.
  public let language: String
  public let languageProbability: Double
  public let audioSeconds: Double
  public let segments: Int
  /// Of 30 seconds, each beginning where the last one's text ended.
  public let windows: Int
  /// Of them, those of which no temperature's text passed.
  public let failedWindows: Int
  /// Chosen, those of texts that did not pass too.
  public let tokens: Int

  init(_ stats: akunu_transcription_stats) {
    finish = Finish(stats.finish)
    language = text(of: stats.language)
    languageProbability = stats.language_probability
    audioSeconds = stats.audio_seconds
    segments = Int(stats.n_segments)
    windows = Int(stats.n_windows)
    failedWindows = Int(stats.n_failed_windows)
    tokens = Int(stats.n_tokens)
  }
}

extension Model {
  /// What is said in a WAV file at 16 kHz, told by segments as they are heard, and returns at once.
  ///
  /// ```swift
  /// for try await segment in try model.transcribe(file: "speech.wav") {
  ///   print(segment.start, segment.text)
  /// }
  /// ```
  ///
  /// What is wrong, the segments throw: `.argument` for options out of range or a file that is not there, `.file` for a
  /// damaged one, `.unsupported` for another rate, another kind of file, or a model that is no Whisper model.
  ///
  /// - Throws: `.argument` for options that C has no numbers for.
  public func transcribe(
    file path: String, _ options: TranscribeOptions = TranscribeOptions()
  ) throws(AkunuError) -> Transcription {
    try options.validate()
    return Transcription { hearing, stats throws(AkunuError) in
      try withCStrings([path]) { strings throws(AkunuError) in
        try options.call { options throws(AkunuError) in
          try check(
            akunu_transcribe_file(
              self.handle.raw, strings[0], options, Hearing.tell, hearing.raw, &stats))
        }
      }
    }
  }

  /// Likewise of samples at 16 kHz, within -1 and 1, of one channel.
  public func transcribe(
    _ samples: [Float], _ options: TranscribeOptions = TranscribeOptions()
  ) throws(AkunuError) -> Transcription {
    try options.validate()
    return Transcription { hearing, stats throws(AkunuError) in
      try options.call { options throws(AkunuError) in
        try check(
          akunu_transcribe(
            self.handle.raw, samples, samples.count, options, Hearing.tell, hearing.raw, &stats))
      }
    }
  }

  /// Likewise of samples as they come, in pieces of any length, until the sequence ends: a window of 30 seconds is heard
  /// when it is full. How loud a window is, is measured in it alone, so that texts may differ from those of all samples
  /// at once. An error of the sequence ends the segments with it.
  public func transcribe<Pieces: AsyncSequence & Sendable>(
    _ pieces: Pieces, _ options: TranscribeOptions = TranscribeOptions()
  ) throws(AkunuError) -> Transcription where Pieces.Element == [Float] {
    try options.validate()
    return try Transcription(pieces, of: self) { hearing throws(AkunuError) in
      try options.call { options throws(AkunuError) in
        try Handle(close: { akunu_close_transcription($0) }) {
          akunu_open_transcription(self.handle.raw, options, Hearing.tell, hearing.raw, $0)
        }
      }
    }
  }

  /// Codes of the languages that a Whisper model knows: `"en"`.
  ///
  /// - Throws: `.unsupported` of another model.
  public var languages: [String] {
    get throws(AkunuError) {
      try filledText(guess: 1024) { akunu_get_languages(handle.raw, $0, $1, $2) }
        .split(separator: "\n").map(String.init)
    }
  }
}

/// Speech that is being heard: a sequence of segments, which one task reads once.
///
/// It is cancelled when the task that reads it is cancelled (the loop then ends without an error), when the loop is left
/// early, when nobody holds the segments any more, and by `cancel`. A thread of Dispatch hears; of files and of samples
/// that are there, cancelling takes effect with the next segment, of samples as they come at once.
public final class Transcription: AsyncSequence, Sendable {
  /// Errors are `AkunuError`, and those of a sequence of samples.
  public let segments: AsyncThrowingStream<Segment, any Error>
  private let hearing: Hearing

  /// Of audio that is there: `hear` computes until it is over.
  init(
    _ hear: @escaping @Sendable (Hearing, inout akunu_transcription_stats) throws(AkunuError) -> Void
  ) {
    let (segments, continuation) = AsyncThrowingStream<Segment, any Error>.makeStream()
    let hearing = Hearing(continuation)
    (self.segments, self.hearing) = (segments, hearing)
    hearing.endsWithItsReader()
    DispatchQueue.global(qos: .userInitiated).async {
      do {
        hearing.finish(try counted { stats throws(AkunuError) in try hear(hearing, &stats) })
      } catch {
        continuation.finish(throwing: error)
      }
    }
  }

  /// Of audio that comes.
  init<Pieces: AsyncSequence & Sendable>(
    _ pieces: Pieces, of model: Model, open: (Hearing) throws(AkunuError) -> Handle
  ) throws(AkunuError) where Pieces.Element == [Float] {
    let (segments, continuation) = AsyncThrowingStream<Segment, any Error>.makeStream()
    let hearing = Hearing(continuation)
    (self.segments, self.hearing) = (segments, hearing)
    let handle = try open(hearing)
    let listening = Task {
      do {
        do {
          for try await samples in pieces {
            try await waiting { () throws(AkunuError) in
              try check(akunu_hear(handle.raw, samples, samples.count))
            }
            if hearing.isCancelled { break }
          }
        } catch where hearing.isCancelled {
          // The sequence's way to say that its task was cancelled.
        }
        hearing.finish(
          try await waiting { () throws(AkunuError) in
            try counted { stats throws(AkunuError) in
              try check(akunu_finish_transcription(handle.raw, &stats))
            }
          })
      } catch {
        continuation.finish(throwing: error)
      }
      handle.close()
      withExtendedLifetime(model) {}
    }
    hearing.endsWithItsReader {
      _ = akunu_cancel_transcription(handle.raw)
      listening.cancel()
    }
  }

  public func makeAsyncIterator() -> AsyncThrowingStream<Segment, any Error>.AsyncIterator {
    segments.makeAsyncIterator()
  }

  /// All that is said, once it is over.
  public func text() async throws -> String {
    var text = ""
    for try await segment in segments { text += segment.text }
    return text
  }

  /// No more is heard; segments that are there still come.
  public func cancel() { hearing.cancel() }

  /// `nil` until it is over, and where it failed.
  public var stats: TranscriptionStats? { hearing.stats }
}

private func counted(
  _ call: (inout akunu_transcription_stats) throws(AkunuError) -> Void
) throws(AkunuError) -> TranscriptionStats {
  var stats = akunu_transcription_stats()
  stats.size = MemoryLayout<akunu_transcription_stats>.size
  try call(&stats)
  return TranscriptionStats(stats)
}

/// Who is told of segments. Unchecked: what changes is behind the lock.
final class Hearing: @unchecked Sendable {
  private let continuation: AsyncThrowingStream<Segment, any Error>.Continuation
  private let lock = NSLock()
  private var cancelled = false
  private var onCancel: @Sendable () -> Void = {}
  private var known: TranscriptionStats?

  init(_ continuation: AsyncThrowingStream<Segment, any Error>.Continuation) {
    self.continuation = continuation
  }

  /// This object for C, which lives as long as the closures that hold it.
  var raw: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let tell: akunu_segment_callback = { segment, hearing in
    guard let segment, let hearing else { return false }
    return Unmanaged<Hearing>.fromOpaque(hearing).takeUnretainedValue().take(Segment(segment.pointee))
  }

  var isCancelled: Bool { lock.withLock { cancelled } }
  var stats: TranscriptionStats? { lock.withLock { known } }

  /// Nobody reads on: nothing more is heard. `also` ends what is under way.
  func endsWithItsReader(_ also: @escaping @Sendable () -> Void = {}) {
    lock.withLock { onCancel = also }
    continuation.onTermination = { [weak self] reason in
      if case .cancelled = reason { self?.cancel() }
    }
  }

  func cancel() {
    let also = lock.withLock {
      cancelled = true
      return onCancel
    }
    also()
  }

  func finish(_ stats: TranscriptionStats) {
    lock.withLock { known = stats }
    continuation.finish()
  }

  /// Whether more is wanted.
  private func take(_ segment: Segment) -> Bool {
    continuation.yield(segment)
    return !isCancelled
  }
}
