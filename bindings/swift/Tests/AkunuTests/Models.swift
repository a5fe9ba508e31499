import Akunu
import Foundation

/// What the tests run on. The Python tests (tests/capi/test_swift.py) write files that tools of this repository make
/// and say in the environment where they are; without them, the model that the repository brings serves.
enum Models {
  static let generates =
    environment("AKUNU_MODEL")
    ?? URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../../../python/akunu/data/ember-q8_0.gguf").standardized.path
  /// One that embeds.
  static let embeds = environment("AKUNU_EMBEDDING_MODEL")
  /// Files of vocabularies, apart by colons.
  static let vocabularies = environment("AKUNU_VOCABULARIES")?.split(separator: ":").map(String.init) ?? []

  static func load(_ change: (inout LoadOptions) -> Void = { _ in }) async throws -> Model {
    var options = LoadOptions()
    options.device = "cpu"
    options.context = 512
    options.threads = 1
    change(&options)
    return try await Model.load(generates, options)
  }

  private static func environment(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }
}
