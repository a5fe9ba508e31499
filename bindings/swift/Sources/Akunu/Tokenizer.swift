import CAkunu

/// Text to tokens and back, by the vocabulary of a model or of a file.
///
/// ```swift
/// let tokenizer = try Tokenizer("model.gguf")
/// let tokens = try tokenizer.encode("Hello")
/// print(try tokenizer.decode(tokens))
/// ```
///
/// Threads may share it.
public final class Tokenizer: Sendable {
  private let handle: Handle

  /// Of a GGUF file, with or without weights in it, or of a directory with a `tokenizer.json`.
  ///
  /// - Throws: `.argument` where there is no such file, `.file` where it is damaged, `.unsupported` for kinds
  ///   that only the Python package has.
  public init(_ path: String) throws(AkunuError) {
    handle = try withCStrings([path]) { strings throws(AkunuError) in
      try Handle(close: { akunu_close_tokenizer($0) }) { akunu_open_tokenizer(strings[0], $0) }
    }
  }

  /// Of a model.
  init(of model: Handle) throws(AkunuError) {
    handle = try Handle(close: { akunu_close_tokenizer($0) }) { akunu_get_tokenizer(model.raw, $0) }
  }

  public var vocabularySize: Int {
    get throws(AkunuError) {
      var size: UInt32 = 0
      try check(akunu_get_vocab_size(handle.raw, &size))
      return Int(size)
    }
  }

  /// - Parameters:
  ///   - addSpecial: with what the model expects around a prompt (BOS, rarely EOS).
  ///   - parseSpecial: names of control tokens in the text become those tokens; leave it off for text that you did
  ///     not write.
  public func encode(
    _ text: String, addSpecial: Bool = true, parseSpecial: Bool = false
  ) throws(AkunuError) -> [UInt32] {
    let bytes = text.utf8.map { CChar(bitPattern: $0) }
    return try filled(UInt32.self, guess: bytes.count + 2) { tokens, capacity, length in
      akunu_encode(handle.raw, bytes, bytes.count, addSpecial, parseSpecial, tokens, capacity, length)
    }
  }

  /// Bytes that are no UTF-8 become U+FFFD.
  public func decode(_ tokens: [UInt32], skipSpecial: Bool = false) throws(AkunuError) -> String {
    try filledText(guess: 8 * tokens.count + 16) { buffer, capacity, length in
      akunu_decode(handle.raw, tokens, tokens.count, skipSpecial, buffer, capacity, length)
    }
  }

  /// The bytes that one token adds to a text, which need not be UTF-8; of a control token its name.
  public func bytes(of token: UInt32) throws(AkunuError) -> [UInt8] {
    try filled(CChar.self, guess: 64) { akunu_token_bytes(handle.raw, token, $0, $1, $2) }
      .map { UInt8(bitPattern: $0) }
  }

  /// The tokens after which a text is over.
  public var stopTokens: [UInt32] {
    get throws(AkunuError) {
      try filled(UInt32.self, guess: 8) { akunu_get_stop_ids(handle.raw, $0, $1, $2) }
    }
  }

  /// The Jinja source of the chat template; `nil` where the model has none.
  public var chatTemplate: String? {
    get throws(AkunuError) {
      let source = try filledText(guess: 4096) {
        akunu_get_chat_template(handle.raw, $0, $1, $2)
      }
      return source.isEmpty ? nil : source
    }
  }

  /// Which of the built-in chat formats it is: `"chatml"`, `"llama3.1"`.
  public var chatFormat: String {
    get throws(AkunuError) { try filledText { akunu_chat_format_name(handle.raw, $0, $1, $2) } }
  }

  /// A conversation as the model's chat template writes it.
  ///
  /// - Throws: `.unsupported` for a template that is not built in, `.argument` for what the template refuses.
  public func format(_ messages: [Message], _ options: ChatOptions = ChatOptions()) throws(AkunuError)
    -> String
  {
    try options.call(messages) { messages, count, options throws(AkunuError) in
      try filledText(guess: 1024) {
        akunu_format_chat(handle.raw, messages, count, options, $0, $1, $2)
      }
    }
  }

  /// Likewise as tokens: what to generate from. Names of control tokens in a message stay text.
  public func encode(_ messages: [Message], _ options: ChatOptions = ChatOptions()) throws(AkunuError)
    -> [UInt32]
  {
    try options.call(messages) { messages, count, options throws(AkunuError) in
      try filled(UInt32.self, guess: 1024) {
        akunu_encode_chat(handle.raw, messages, count, options, $0, $1, $2)
      }
    }
  }
}
