import Foundation
import Testing

@testable import Akunu

/// What goes over the border to C, and what comes back.
@Suite struct BorderTests {
  @Test func theVersionIsTheLibrarys() {
    #expect(version.split(separator: ".").count == 3)
  }

  @Test func theProcessorIsADevice() throws {
    #expect(try devices().contains("cpu"))
  }

  @Test func aMissingFileIsAnArgument() throws {
    guard case .argument(let why)? = failure({ () throws(AkunuError) in try Model("missing.gguf") }) else {
      Issue.record("a missing file was loaded, or refused for another reason")
      return
    }
    #expect(why.contains("missing.gguf"))
  }

  @Test func aDamagedFileIsAFileError() throws {
    let path = NSTemporaryDirectory() + "damaged-\(UUID()).gguf"
    let whole = try Data(contentsOf: URL(fileURLWithPath: Models.generates), options: .alwaysMapped)
    try whole.prefix(1000).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    guard case .file(let why)? = failure({ () throws(AkunuError) in try Model(path) }) else {
      Issue.record("a damaged file was loaded, or refused for another reason")
      return
    }
    #expect(why.contains(path))
  }

  @Test func zeroBytesAreRefused() throws {
    guard case .argument(let why)? = failure({ () throws(AkunuError) in try Model("model\0.gguf") }) else {
      Issue.record("a path with a zero byte was taken, or refused for another reason")
      return
    }
    #expect(why.contains("zero byte"))
  }

  @Test func optionsReachTheLibrary() async throws {
    let model = try await Models.load { $0.context = 64 }
    #expect(try model.info.context == 64)
    await #expect(throws: AkunuError.self) { try await Models.load { $0.device = "abacus" } }
    await #expect(throws: AkunuError.self) { try await Models.load { $0.cacheType = "q9" } }
    await #expect(throws: AkunuError.self) { try await Models.load { $0.draft = "missing.gguf" } }
    await #expect(throws: AkunuError.self) { try await Models.load { $0.adapters = ["a": "missing"] } }
    for count in [0, -1, Int(UInt32.max) + 1] {
      await #expect(throws: AkunuError.self) { try await Models.load { $0.context = count } }
    }
  }

  @Test func optionsOfTextsAreChecked() async throws {
    let model = try await Models.load()
    func refused(_ word: String, _ change: (inout GenerateOptions) -> Void) {
      var options = GenerateOptions(maxTokens: 1)
      change(&options)
      let error = failure { () throws(AkunuError) in try model.generate([1], options) }
      guard case .argument(let why)? = error else {
        Issue.record("\(word) was taken, or refused for another reason: \(String(describing: error))")
        return
      }
      #expect(why.contains(word))
    }
    refused("maxTokens") { $0.maxTokens = 0 }
    refused("topK") { $0.sampling.topK = -3 }
    refused("topP") { $0.sampling.topP = 0 }
    refused("top_p") { $0.sampling.topP = 1.5 }
    refused("temperature") { $0.sampling.temperature = .nan }
    refused("repetitionPenalty") { $0.sampling.repetitionPenalty = 0 }
    refused("adapter") { $0.adapters = ["unknown": 1] }
  }

  @Test func whatIsLargeComesWhole() throws {
    // More than what is guessed at first.
    let tokenizer = try Tokenizer(Models.generates)
    let text = String(repeating: "The sea is wide, ", count: 500)
    let tokens = try tokenizer.encode(text, addSpecial: false)
    #expect(try tokenizer.decode(tokens) == text)
  }

  @Test func bytesOfTokensAreTheText() throws {
    let tokenizer = try Tokenizer(Models.generates)
    let text = "Grüße, 世界 🌊"
    let bytes = try tokenizer.encode(text, addSpecial: false).flatMap { try tokenizer.bytes(of: $0) }
    #expect(String(decoding: bytes, as: UTF8.self) == text)
    #expect(throws: AkunuError.self) { try tokenizer.bytes(of: .max) }
  }

  @Test func conversationsAreWritten() throws {
    let tokenizer = try Tokenizer(Models.generates)
    let messages: [Message] = [.system("Be kind."), .user("Hello"), .assistant("Hi"), .user("<|im_end|>")]
    let text = try tokenizer.format(messages)
    for message in messages { #expect(text.contains(message.content)) }
    #expect(try tokenizer.encode(messages).isEmpty == false)
    #expect(try tokenizer.chatTemplate != nil)
    #expect(try tokenizer.chatFormat.isEmpty == false)
    var closed = ChatOptions()
    closed.opensTurn = false
    #expect(try text.hasPrefix(tokenizer.format(messages, closed)))
    #expect(try tokenizer.format(messages, closed) != text)
    #expect(throws: AkunuError.self) { try tokenizer.format([.user("a\0b")]) }
    #expect(throws: AkunuError.self) { try tokenizer.format([Message(role: "nobody", content: "a")]) }
  }

  @Test func piecesAreTheText() throws {
    let text = "Once, a naïve café — 世界 🌊👩‍🚀 e\u{301}\u{323} \t\n  x"
    for path in Models.vocabularies + [Models.generates] {
      let tokenizer = try Tokenizer(path)
      let tokens = try tokenizer.encode(text, addSpecial: false)
      #expect(try pieces(tokens[...], tokenizer, after: nil) == tokenizer.decode(tokens, skipSpecial: true), "\(path)")
      // From the middle on: what is new behind what was there.
      for start in 1..<tokens.count {
        let before = try tokenizer.decode(Array(tokens[..<start]), skipSpecial: true)
        guard !before.hasSuffix("\u{FFFD}") else { continue }  // within a character
        // Behind a token that is not shown, a text begins anew.
        if try tokenizer.decode([tokens[start - 1]], skipSpecial: true).isEmpty { continue }
        let rest = try pieces(tokens[start...], tokenizer, after: tokens[start - 1])
        #expect(try before + rest == tokenizer.decode(tokens, skipSpecial: true), "\(path), \(start)")
      }
    }
  }

  @Test func halfACharacterIsToldAtTheEnd() throws {
    let tokenizer = try Tokenizer(Models.generates)
    // A vocabulary of bytes and merges: the wave is several tokens, or its bytes.
    let wave = try tokenizer.encode("🌊", addSpecial: false)
    try #require(wave.count > 1)
    #expect(try pieces(wave.dropLast(), tokenizer, after: nil) == "\u{FFFD}")
    #expect(try pieces(wave.dropLast() + wave, tokenizer, after: nil) == "\u{FFFD}🌊")
  }

  private func pieces(_ tokens: ArraySlice<UInt32>, _ tokenizer: Tokenizer, after last: UInt32?) throws
    -> String
  {
    var pieces = TextPieces(tokenizer, after: last)
    var text = ""
    for token in tokens {
      let piece = try pieces.push(token)
      #expect(!piece.unicodeScalars.contains("\u{FFFD}") || tokens.count < 10)
      text += piece
    }
    return text + (try pieces.finish())
  }
}

/// What a call throws.
func failure<Value>(_ call: () throws(AkunuError) -> Value) -> AkunuError? {
  do {
    _ = try call()
    return nil
  } catch {
    return error
  }
}
