import CAkunu

/// The version of the library, `"0.1.0"`.
public var version: String { String(cString: akunu_version()) }

/// The devices of this build, the fastest first.
public func devices() throws(AkunuError) -> [String] {
  try filledText { akunu_get_devices($0, $1, $2) }.split(separator: "\n").map(String.init)
}

/// A model that generates text, or embeds it.
///
/// ```swift
/// let model = try await Model.load("model.gguf")
/// for try await piece in try model.generate("The sea is", GenerateOptions(maxTokens: 64)) {
///   print(piece.text, terminator: "")
/// }
/// ```
///
/// Threads and tasks may share it: their texts run in the same steps, and each is what it is alone. Its
/// memory goes with the object, or after `close`.
public final class Model: Sendable {
  let handle: Handle
  private let vocabulary: Result<Tokenizer, AkunuError>

  /// Loads a GGUF file (of a split one, any part) or a directory of Hugging Face or MLX, and waits for it.
  ///
  /// - Throws: `.argument` for a path or an option that makes no sense, `.file` for a damaged file,
  ///   `.unsupported` for a model or a device that is not here, `.memory`.
  public init(_ path: String, _ options: LoadOptions = LoadOptions()) throws(AkunuError) {
    let loaded = try withCStrings([path]) { strings throws(AkunuError) in
      try options.call { options throws(AkunuError) in
        try Handle(close: { akunu_close_model($0) }) { akunu_load_model(strings[0], options, $0) }
      }
    }
    handle = loaded
    // A model whose vocabulary only Python reads can still be given tokens.
    vocabulary = Result { () throws(AkunuError) in try Tokenizer(of: loaded) }
  }

  /// Likewise, without keeping the task's thread.
  public static func load(
    _ path: String, _ options: LoadOptions = LoadOptions()
  ) async throws(AkunuError) -> Model {
    try await waiting { () throws(AkunuError) in try Model(path, options) }
  }

  /// Ends what is under way and gives the memory back; every later call throws `.handle`. Once more is nothing.
  public func close() { handle.close() }

  public var info: ModelInfo {
    get throws(AkunuError) {
      var info = akunu_model_info()
      info.size = MemoryLayout<akunu_model_info>.size
      try check(akunu_get_model_info(handle.raw, &info))
      return ModelInfo(info)
    }
  }

  /// What was decided at load and might not be expected.
  public var notes: [String] {
    get throws(AkunuError) {
      try filledText { akunu_get_notes(handle.raw, $0, $1, $2) }.split(separator: "\n").map(String.init)
    }
  }

  public var tokenizer: Tokenizer { get throws(AkunuError) { try vocabulary.get() } }

  /// Starts a text that goes on from these tokens, and returns at once.
  ///
  /// - Throws: `.argument` for options out of range, `.context` where the prompt does not fit, `.busy`, `.handle`
  ///   of a closed model.
  public func generate(
    _ prompt: [UInt32], _ options: GenerateOptions = GenerateOptions()
  ) throws(AkunuError) -> Generation {
    let tokenizer = try tokenizer
    let started = try options.call { options throws(AkunuError) in
      try Handle(close: { akunu_close_generation($0) }) {
        akunu_start(handle.raw, prompt, prompt.count, options, $0)
      }
    }
    return try Generation(started, TextPieces(tokenizer, after: prompt.last))
  }

  /// Likewise from a text, with the special tokens that the model expects around it.
  public func generate(
    _ prompt: String, _ options: GenerateOptions = GenerateOptions()
  ) throws(AkunuError) -> Generation {
    try generate(try tokenizer.encode(prompt), options)
  }

  /// The next turn of a conversation, in the format of the model's chat template.
  ///
  /// - Throws: also `.unsupported` for a template that is not built in.
  public func chat(
    _ messages: [Message], _ options: GenerateOptions = GenerateOptions(),
    format: ChatOptions = ChatOptions()
  ) throws(AkunuError) -> Generation {
    try generate(try tokenizer.encode(messages, format), options)
  }

  /// One vector per text, pooled as the model's file says and of length 1. Texts run together.
  ///
  /// - Throws: `.unsupported` of a model that generates text, `.context` for a text that is too long.
  public func embed(_ texts: [String]) async throws(AkunuError) -> [[Float]] {
    let dim = try info.embeddingDim
    return try await waiting { () throws(AkunuError) in
      let numbers = try withCStrings(texts) { strings throws(AkunuError) in
        try filled(Float.self, guess: texts.count * dim) {
          akunu_embed(self.handle.raw, strings, strings.count, $0, $1, $2)
        }
      }
      return texts.indices.map { Array(numbers[($0 * dim)..<(($0 + 1) * dim)]) }
    }
  }

  /// The logits of the last token, one per token of the vocabulary.
  public func logits(_ tokens: [UInt32]) async throws(AkunuError) -> [Float] {
    let size = try info.vocabularySize
    return try await waiting { () throws(AkunuError) in
      try filled(Float.self, guess: size) {
        akunu_logits(self.handle.raw, tokens, tokens.count, $0, $1, $2)
      }
    }
  }
}

/// What a model is.
public struct ModelInfo: Sendable, Hashable {
  /// `"llama"`, as the file has it.
  public let architecture: String
  /// The model's own name, cut; `""` where the file has none.
  public let name: String
  public let layers: Int
  public let dim: Int
  public let heads: Int
  public let keyValueHeads: Int
  public let vocabularySize: Int
  /// Positions that it was trained for.
  public let trainedContext: Int
  /// Positions that a text may have here.
  public let context: Int
  /// Numbers of an embedding; 0: the model generates text.
  public let embeddingDim: Int
  /// Bytes of the device, all together.
  public let memoryBytes: UInt64
  /// Bytes of the file that are read where they lie.
  public let mappedBytes: UInt64
  /// 0: no mixture of experts.
  public let experts: Int
  public let expertsChosen: Int

  init(_ info: akunu_model_info) {
    architecture = text(of: info.architecture)
    name = text(of: info.name)
    layers = Int(info.n_layers)
    dim = Int(info.dim)
    heads = Int(info.n_heads)
    keyValueHeads = Int(info.n_kv_heads)
    vocabularySize = Int(info.vocab_size)
    trainedContext = Int(info.trained_context)
    context = Int(info.context)
    embeddingDim = Int(info.embedding_dim)
    memoryBytes = info.memory_bytes
    mappedBytes = info.mapped_bytes
    experts = Int(info.n_experts)
    expertsChosen = Int(info.n_experts_chosen)
  }
}
