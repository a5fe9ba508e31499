import Foundation
import Testing

@testable import Akunu

/// Speech, of a model and audio that tests/capi/test_swift.py writes, beside what the Python package hears.
@Suite(.enabled(if: Speech.folder != nil, "AKUNU_SPEECH_FOLDER is not set")) struct SpeechTests {
  @Test func aFileIsHeardInSegments() async throws {
    let model = try await Speech.load()
    let transcription = try model.transcribe(file: Speech.path("speech.wav"))
    var heard: [Speech.Expected] = []
    for try await segment in transcription { heard.append(Speech.Expected(segment)) }
    #expect(try heard == Speech.expected("plain"))
    #expect(!heard.isEmpty)
    let stats = try #require(transcription.stats)
    #expect(stats.finish == .stop)
    #expect(stats.segments == heard.count)
    #expect(stats.audioSeconds == 15)
    #expect(stats.windows > 1)
  }

  @Test func samplesAreHeardLikewise() async throws {
    let model = try await Speech.load()
    let samples = try Speech.samples()
    let heard = try await Speech.all(model.transcribe(samples))
    #expect(try heard == Speech.expected("plain"))
    let text = try await model.transcribe(samples).text()
    #expect(text == heard.map(\.text).joined())
  }

  @Test func optionsAreThoseOfTheLibrary() async throws {
    let model = try await Speech.load()
    var options = TranscribeOptions(language: "de")
    options.task = .translate
    options.temperatures = [0, 0.5]
    options.bestOf = 2
    options.prompt = " so it was "
    options.timestamps = false
    options.usesPreviousText = false
    options.seed = 11
    let heard = try await Speech.all(model.transcribe(Speech.samples(), options))
    #expect(try heard == Speech.expected("options"))
  }

  /// Of less than a window, so that nothing is louder elsewhere.
  @Test func samplesMayComeInPieces() async throws {
    let model = try await Speech.load()
    let samples = Array(try Speech.samples().prefix(5 * 16_000))
    let pieces = AsyncStream<[Float]> { continuation in
      for start in stride(from: 0, to: samples.count, by: 7_001) {
        continuation.yield(Array(samples[start..<min(start + 7_001, samples.count)]))
      }
      continuation.finish()
    }
    let transcription = try model.transcribe(pieces)
    let heard = try await Speech.all(transcription)
    #expect(try heard == Speech.expected("short"))
    #expect(transcription.stats?.finish == .stop)
    #expect(transcription.stats?.audioSeconds == 5)
  }

  @Test func samplesWithoutEndAreCancelled() async throws {
    let model = try await Speech.load()
    let samples = try Speech.samples()
    let (pieces, continuation) = AsyncStream<[Float]>.makeStream()
    let transcription = try model.transcribe(pieces)
    continuation.yield(samples)
    var count = 0
    for try await _ in transcription {
      count += 1
      if count == 1 { transcription.cancel() }
    }
    #expect(count >= 1)
    #expect(transcription.stats?.finish == .cancelled)
  }

  @Test func whoLeavesTheLoopHearsNoMore() async throws {
    let model = try await Speech.load()
    let long = Array(repeating: try Speech.samples(), count: 40).flatMap { $0 }
    let transcription = try model.transcribe(long)
    for try await _ in transcription { break }
    transcription.cancel()
    while transcription.stats == nil { try await Task.sleep(nanoseconds: 1_000_000) }
    let stats = try #require(transcription.stats)
    #expect(stats.finish == .cancelled)
    #expect(stats.windows < 40)
  }

  @Test func anErrorOfTheSamplesEndsTheSegments() async throws {
    struct Broken: Error {}
    let model = try await Speech.load()
    let pieces = AsyncThrowingStream<[Float], any Error> { $0.finish(throwing: Broken()) }
    let transcription = try model.transcribe(pieces)
    await #expect(throws: Broken.self) { try await transcription.text() }
    #expect(transcription.stats == nil)
  }

  @Test func whatIsWrongIsSaid() async throws {
    let model = try await Speech.load()
    let missing = try model.transcribe(file: "missing.wav")
    do {
      _ = try await missing.text()
      Issue.record("a file that is not there was heard")
    } catch AkunuError.argument(let why) {
      #expect(why.contains("missing.wav"))
    }
    let unknown = try model.transcribe(try Speech.samples(), TranscribeOptions(language: "xx"))
    await #expect(throws: AkunuError.self) { try await unknown.text() }
    var options = TranscribeOptions()
    options.temperatures = []
    #expect(throws: AkunuError.argument("temperatures has none, expected one or more")) {
      try model.transcribe([], options)
    }
    options = TranscribeOptions()
    options.bestOf = 0
    #expect(throws: AkunuError.argument("bestOf is 0, expected 1 or more, or nil")) {
      try model.transcribe([], options)
    }
    options = TranscribeOptions(language: "d\0e")
    #expect(throws: AkunuError.self) { try model.transcribe([], options) }
  }

  @Test func languagesAreListed() async throws {
    let model = try await Speech.load()
    #expect(try model.languages.contains("de"))
    let another = try await Models.load()
    #expect(throws: AkunuError.self) { try another.languages }
    let transcription = try another.transcribe([0])
    await #expect(throws: AkunuError.self) { try await transcription.text() }
  }
}

/// The files in AKUNU_SPEECH_FOLDER: model/, speech.wav, speech.f32 (the same samples), and NAME.json, what is heard.
enum Speech {
  static let folder = ProcessInfo.processInfo.environment["AKUNU_SPEECH_FOLDER"].flatMap {
    $0.isEmpty ? nil : URL(fileURLWithPath: $0)
  }

  struct Expected: Codable, Equatable {
    let id: Int
    let start, end: Double
    let text: String
    let tokens: [UInt32]

    init(_ segment: Segment) {
      (id, start, end, text) = (segment.id, segment.start, segment.end, segment.text)
      tokens = segment.tokens
    }
  }

  static func path(_ name: String) -> String { folder!.appendingPathComponent(name).path }

  static func load() async throws -> Model {
    var options = LoadOptions()
    options.device = "cpu"
    options.threads = 1
    return try await Model.load(path("model"), options)
  }

  static func samples() throws -> [Float] {
    let data = try Data(contentsOf: folder!.appendingPathComponent("speech.f32"))
    return data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
  }

  static func expected(_ name: String) throws -> [Expected] {
    let data = try Data(contentsOf: folder!.appendingPathComponent(name + ".json"))
    return try JSONDecoder().decode([Expected].self, from: data)
  }

  static func all(_ transcription: Transcription) async throws -> [Expected] {
    var heard: [Expected] = []
    for try await segment in transcription { heard.append(Expected(segment)) }
    return heard
  }
}
