import Foundation
import Testing

@testable import Akunu

/// Texts, sessions and vectors.
@Suite struct GenerationTests {
  @Test func aTextComesInPieces() async throws {
    let model = try await Models.load()
    let generation = try model.generate("The sea is", GenerateOptions(maxTokens: 24))
    var tokens: [UInt32] = []
    var text = ""
    for try await piece in generation {
      if let token = piece.token { tokens.append(token) }
      text += piece.text
    }
    #expect(!text.isEmpty)
    #expect(try text == model.tokenizer.decode(tokens, skipSpecial: true))
    let stats = try generation.stats
    #expect(stats.completionTokens == tokens.count)
    #expect(stats.finish == .length || stats.finish == .stop)
    #expect(try stats.promptTokens == model.tokenizer.encode("The sea is").count)
    #expect(stats.promptSeconds > 0)
  }

  /// Each token is the likeliest behind those before it.
  @Test func greedyTokensAreTheLikeliest() async throws {
    let model = try await Models.load()
    var tokens = try model.tokenizer.encode("The sea is")
    let chosen = try await model.generate(tokens, GenerateOptions(maxTokens: 4)).tokens()
    for token in chosen {
      let logits = try await model.logits(tokens)
      #expect(try logits.count == model.info.vocabularySize)
      #expect(logits[Int(token)] == logits.max())
      tokens.append(token)
    }
  }

  @Test func aSeedGivesItsText() async throws {
    let model = try await Models.load()
    func text(_ seed: UInt64) async throws -> String {
      var options = GenerateOptions(maxTokens: 24)
      options.sampling.temperature = 1.2
      options.sampling.seed = seed
      return try await model.generate("Once", options).text()
    }
    #expect(try await text(1) == text(1))
    #expect(try await text(1) != text(2))
  }

  @Test func textsOfTasksRunTogether() async throws {
    let model = try await Models.load()
    let prompts = ["The sea", "A cat", "Once upon", "12 + 7"]
    var alone: [String] = []
    for prompt in prompts {
      alone.append(try await model.generate(prompt, GenerateOptions(maxTokens: 16)).text())
    }
    let together = try await withThrowingTaskGroup(of: (Int, String).self) { group in
      for (i, prompt) in prompts.enumerated() {
        group.addTask { (i, try await model.generate(prompt, GenerateOptions(maxTokens: 16)).text()) }
      }
      var texts = prompts
      for try await (i, text) in group { texts[i] = text }
      return texts
    }
    #expect(together == alone)
  }

  @Test func aStopTokenEndsTheText() async throws {
    let model = try await Models.load()
    let tokens = try await model.generate("The sea is", GenerateOptions(maxTokens: 8)).tokens()
    var options = GenerateOptions(maxTokens: 8)
    options.stopTokens = [tokens[2]]
    let generation = try model.generate("The sea is", options)
    let first = try #require(tokens.firstIndex(of: tokens[2]))
    let shorter = try await generation.tokens()
    #expect(shorter.count <= first + 1)
    #expect(try generation.stats.finish == .stop)
  }

  @Test func aConversationGoesOn() async throws {
    let model = try await Models.load()
    var messages: [Message] = [.user("Hello")]
    let reply = try await model.chat(messages, GenerateOptions(maxTokens: 32)).text()
    messages += [.assistant(reply), .user("And now?")]
    let next = try model.chat(messages, GenerateOptions(maxTokens: 8))
    _ = try await next.text()
    #expect(try next.stats.cachedTokens > 0)
  }

  // ---- endings ----

  private func endless() -> GenerateOptions {
    var options = GenerateOptions(maxTokens: 480)
    options.ignoresStops = true
    return options
  }

  private func finish(of generation: Generation) async throws -> Finish? {
    for _ in 0..<500 {
      if let finish = try generation.stats.finish { return finish }
      try await Task.sleep(nanoseconds: 10_000_000)
    }
    return nil
  }

  @Test func cancellingTheTaskCancelsTheText() async throws {
    let model = try await Models.load()
    let generation = try model.generate("The sea is", endless())
    let task = Task { () -> Int in
      var count = 0
      for try await _ in generation { count += 1 }
      return count
    }
    try await Task.sleep(nanoseconds: 5_000_000)
    task.cancel()
    #expect(try await task.value < 480)
    #expect(try await finish(of: generation) == .cancelled)
    #expect(try generation.stats.completionTokens < 480)
  }

  @Test func leavingTheLoopCancelsTheText() async throws {
    let model = try await Models.load()
    weak var left: Generation?
    do {
      let generation = try model.generate("The sea is", endless())
      left = generation
      for try await _ in generation { break }
    }
    #expect(left == nil)
    // The one slot of its kind is free again.
    #expect(try await model.generate("A", GenerateOptions(maxTokens: 2)).tokens().count <= 2)
  }

  @Test func cancelEndsTheText() async throws {
    let model = try await Models.load()
    let generation = try model.generate("The sea is", endless())
    generation.cancel()
    #expect(try await generation.tokens().count < 480)
    #expect(try await finish(of: generation) == .cancelled)
  }

  @Test func aClosedModelIsRefused() async throws {
    let model = try await Models.load()
    let generation = try model.generate("The sea is", endless())
    model.close()
    model.close()
    await #expect(throws: AkunuError.self) { try await generation.text() }
    #expect(throws: AkunuError.self) { try model.info }
    #expect(throws: AkunuError.self) { try model.generate([1]) }
    await #expect(throws: AkunuError.self) { try await model.logits([1]) }
    guard case .handle? = failure({ () throws(AkunuError) in try model.generate([1]) }) else {
      Issue.record("a closed model generated, or refused for another reason")
      return
    }
    #expect(throws: AkunuError.self) { try Session(model) }
  }

  @Test func aTextOutlivesTheModelsName() async throws {
    var model: Model? = try await Models.load()
    let generation = try #require(model).generate("The sea is", GenerateOptions(maxTokens: 8))
    model = nil  // its memory goes when the text is over, or the text fails: nothing is followed that is gone
    do {
      #expect(try await generation.tokens().count <= 8)
    } catch {
      #expect(error is AkunuError)
    }
  }

  @Test func aPromptThatIsTooLongIsTheContexts() async throws {
    let model = try await Models.load { $0.context = 16 }
    do {
      _ = try await model.generate([UInt32](repeating: 5, count: 40)).text()
      Issue.record("a prompt that does not fit was taken")
    } catch let error as AkunuError {
      guard case .context = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  // ---- sessions ----

  @Test func aSessionIsAText() async throws {
    let model = try await Models.load()
    let prompt = try model.tokenizer.encode("The sea is")
    let session = try Session(model)
    try session.append(prompt)
    let generation = try session.generate(GenerateOptions(maxTokens: 8))
    let tokens = try await generation.tokens()
    #expect(try await model.generate(prompt, GenerateOptions(maxTokens: 8)).tokens() == tokens)
    #expect(try session.tokens.starts(with: prompt))
    #expect(try generation.stats.completionTokens == tokens.count)

    let fork = try session.fork()
    try fork.rewind(to: prompt.count)
    #expect(try fork.tokens == prompt)
    #expect(try await fork.generate(GenerateOptions(maxTokens: 8)).tokens() == tokens)
    #expect(throws: AkunuError.self) { try fork.rewind(to: -1) }
    #expect(throws: AkunuError.self) { try fork.append([UInt32](repeating: 1, count: 1000)) }
  }

  @Test func aSessionIsBusyWhileItGenerates() async throws {
    let model = try await Models.load()
    let session = try Session(model)
    try session.append(model.tokenizer.encode("The sea is"))
    let generation = try session.generate(endless())
    var iterator = generation.makeAsyncIterator()
    _ = try await iterator.next()
    #expect(throws: AkunuError.self) { try session.append([1]) }
    generation.cancel()
    while try await iterator.next() != nil {}
    #expect(try generation.stats.finish == .cancelled)
    try session.append([1])
  }

  @Test func anEmptySessionHasNothingToGoOnFrom() async throws {
    let session = try Session(try await Models.load())
    await #expect(throws: AkunuError.self) { try await session.generate().text() }
  }

  @Test func aSessionIsSavedAndLoaded() async throws {
    let model = try await Models.load()
    let session = try Session(model)
    try session.append(model.tokenizer.encode("The sea is"))
    let path = NSTemporaryDirectory() + "session-\(UUID())"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await session.save(to: path)
    let (loaded, restored) = try await Session.load(path, for: model)
    #expect(try loaded.tokens == session.tokens)
    #expect(try restored <= session.tokens.count)
    let options = GenerateOptions(maxTokens: 8)
    #expect(try await loaded.generate(options).tokens() == session.generate(options).tokens())
    await #expect(throws: AkunuError.self) { try await Session.load(path + "-missing", for: model) }
  }

  // ---- embeddings ----

  @Test(.enabled(if: Models.embeds != nil, "AKUNU_EMBEDDING_MODEL is not set"))
  func vectorsHaveLengthOne() async throws {
    let model = try await Model.load(#require(Models.embeds))
    let vectors = try await model.embed(["a cat", "a kitten", "a cat"])
    #expect(vectors.count == 3)
    for vector in vectors {
      #expect(try vector.count == model.info.embeddingDim)
      #expect(abs(vector.map { $0 * $0 }.reduce(0, +) - 1) < 1e-4)
    }
    #expect(vectors[0] == vectors[2])
    #expect(vectors[0] != vectors[1])
    #expect(try await model.embed([]).isEmpty)
  }

  @Test func aModelThatGeneratesHasNoEmbeddings() async throws {
    let model = try await Models.load()
    await #expect(throws: AkunuError.self) { try await model.embed(["a cat"]) }
  }
}
