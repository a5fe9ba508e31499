import CAkunu

/// How a model is loaded. Without changes: on the fastest device, with all processors.
public struct LoadOptions: Sendable, Hashable {
  /// `"auto"`, `"cpu"`, `"cuda"` or `"metal"`.
  public var device = "auto"
  /// Positions per text; `nil`: what the model was trained for, or what fits.
  public var context: Int?
  /// Workers of the CPU; `nil`: as many as the process may use.
  public var threads: Int?
  /// Bytes for the cache; `nil`: one full context.
  public var cacheBytes: UInt64?
  /// Bytes of a GPU's own memory (CUDA) that the model may take; `nil`: what is free. Weights that find no room
  /// there stay in the host's memory, where the GPU reads them.
  public var gpuMemory: UInt64?
  /// GPUs of this host (CUDA) that compute the model together, up to 8.
  public var gpus = 1
  /// The numbers of keys and values: `"f16"` or `"f32"`, on the CPU `"q8_0"` and `"q4_0"`, too.
  public var cacheType = "f16"
  /// Texts that begin alike compute that beginning once.
  public var sharesPrefixes = true
  /// Low-rank adapters that texts may ask for: what they call them, and the GGUF file or PEFT folder of each.
  public var adapters: [String: String] = [:]
  /// A smaller model of the same vocabulary, which drafts for texts with `speculate`.
  public var draft: String?
  /// The model's own prediction head drafts for texts with `speculate`; a model without one is refused.
  public var predictionHead = false

  public init() {}

  func call<Value>(
    _ body: (UnsafePointer<akunu_load_options>) throws(AkunuError) -> Value
  ) throws(AkunuError) -> Value {
    var given = akunu_load_options()
    given.size = MemoryLayout<akunu_load_options>.size
    given.context = try positive(context, "context")
    given.threads = try positive(threads, "threads")
    if let cacheBytes {
      guard cacheBytes > 0 else { throw .argument("cacheBytes is 0, expected 1 or more, or nil") }
      given.kv_memory = cacheBytes
    }
    if let gpuMemory {
      guard gpuMemory > 0 else { throw .argument("gpuMemory is 0, expected 1 or more, or nil") }
      given.gpu_memory = gpuMemory
    }
    given.gpus = try positive(gpus, "gpus")
    given.no_prefix_cache = !sharesPrefixes
    given.prediction_head = predictionHead
    let named = adapters.sorted { $0.key < $1.key }
    let texts: [String?] = [device, cacheType, draft] + named.flatMap { [$0.key, $0.value] as [String?] }
    return try withCStrings(texts) { strings throws(AkunuError) in
      (given.device, given.kv_type, given.draft) = (strings[0], strings[1], strings[2])
      let lent = named.indices.map {
        akunu_adapter(name: strings[3 + 2 * $0], path: strings[4 + 2 * $0])
      }
      return try lend(lent) { adapters throws(AkunuError) in
        (given.adapters, given.n_adapters) = (adapters, lent.count)
        return try body(&given)
      }
    }
  }
}

/// How tokens are chosen. Without changes: always the likeliest one.
public struct Sampling: Sendable, Hashable {
  /// 0: always the likeliest token.
  public var temperature: Float = 0
  /// Of so many of the likeliest tokens; `nil`: of all.
  public var topK: Int?
  /// Of the likeliest tokens that together reach this probability.
  public var topP: Float = 1
  /// Of tokens with at least this share of the likeliest one's probability.
  public var minP: Float = 0
  public var repetitionPenalty: Float = 1
  public var frequencyPenalty: Float = 0
  public var presencePenalty: Float = 0
  /// The same seed, the same text.
  public var seed: UInt64 = 0

  public init() {}

  func c() throws(AkunuError) -> akunu_sampling {
    // Zero is "the default" in C, and would not be what was asked for.
    guard topP > 0 else { throw .argument("topP is \(topP), expected above 0, to 1") }
    guard repetitionPenalty > 0 else {
      throw .argument("repetitionPenalty is \(repetitionPenalty), expected above 0")
    }
    return akunu_sampling(
      size: MemoryLayout<akunu_sampling>.size, temperature: temperature,
      top_k: try positive(topK, "topK"), top_p: topP, min_p: minP,
      repetition_penalty: repetitionPenalty, frequency_penalty: frequencyPenalty,
      presence_penalty: presencePenalty, seed: seed)
  }
}

/// How a text goes on. Without changes: greedily, until it ends or the context is full.
public struct GenerateOptions: Sendable, Hashable {
  /// `nil`: what the context holds.
  public var maxTokens: Int?
  public var sampling = Sampling()
  /// After these the text ends, beside the model's own.
  public var stopTokens: [UInt32] = []
  /// The model's own stop tokens do not end the text.
  public var ignoresStops = false
  /// Adapters of this text, as `LoadOptions` names them, and how much of each; 1: as it was trained.
  public var adapters: [String: Float] = [:]
  /// Tokens are drafted, by `LoadOptions.draft` or from the text: often faster, never others.
  public var speculates = false

  public init(maxTokens: Int? = nil) { self.maxTokens = maxTokens }

  func call<Value>(
    _ body: (UnsafePointer<akunu_generate_options>) throws(AkunuError) -> Value
  ) throws(AkunuError) -> Value {
    var given = akunu_generate_options()
    given.size = MemoryLayout<akunu_generate_options>.size
    given.max_tokens = try positive(maxTokens, "maxTokens")
    given.ignore_stops = ignoresStops
    given.speculate = speculates
    let chosen = try sampling.c()
    let named = adapters.sorted { $0.key < $1.key }
    return try withCStrings(named.map(\.key)) { names throws(AkunuError) in
      let lent = named.indices.map { akunu_adapter_weight(name: names[$0], weight: named[$0].value) }
      return try lend(lent) { adapters throws(AkunuError) in
        try lend(stopTokens) { stops throws(AkunuError) in
          try lend([chosen]) { chosen throws(AkunuError) in
            given.sampling = chosen
            (given.adapters, given.n_adapters) = (adapters, lent.count)
            (given.stop_ids, given.n_stop_ids) = (stops, stopTokens.count)
            return try body(&given)
          }
        }
      }
    }
  }
}

/// A turn of a conversation.
public struct Message: Sendable, Hashable {
  /// `"system"`, `"user"` or `"assistant"`.
  public var role: String
  public var content: String

  public init(role: String, content: String) {
    self.role = role
    self.content = content
  }
  public static func system(_ content: String) -> Message { Message(role: "system", content: content) }
  public static func user(_ content: String) -> Message { Message(role: "user", content: content) }
  public static func assistant(_ content: String) -> Message {
    Message(role: "assistant", content: content)
  }
}

/// How a conversation is written.
public struct ChatOptions: Sendable, Hashable {
  /// The model's own turn is opened at the end.
  public var opensTurn = true
  /// Models that think, and can do without, think.
  public var thinks = true

  public init() {}

  /// Calls `body` with a conversation and these options.
  func call<Value>(
    _ messages: [Message],
    _ body: ([akunu_message], Int, UnsafePointer<akunu_chat_options>) throws(AkunuError) -> Value
  ) throws(AkunuError) -> Value {
    var given = akunu_chat_options()
    given.size = MemoryLayout<akunu_chat_options>.size
    (given.no_generation_prompt, given.no_thinking) = (!opensTurn, !thinks)
    return try withCStrings(messages.flatMap { [$0.role, $0.content] }) { strings throws(AkunuError) in
      let lent = messages.indices.map {
        akunu_message(role: strings[2 * $0], content: strings[2 * $0 + 1])
      }
      return try body(lent, lent.count, &given)
    }
  }
}

/// How speech is heard. Without changes: in the language that is detected, greedily, at higher temperatures where a
/// window's text is unlikely or repeats itself.
public struct TranscribeOptions: Sendable, Hashable {
  public enum Task: String, Sendable {
    case transcribe
    /// Into English.
    case translate
  }
  /// `"de"`; `nil`: detected in the first 30 seconds.
  public var language: String?
  public var task = Task.transcribe
  /// Tried in order until a window's text is likely and does not repeat itself; 0 is greedy.
  public var temperatures: [Float] = [0, 0.2, 0.4, 0.6, 0.8, 1]
  /// Texts that are drawn at a temperature above 0.
  public var bestOf = 5
  /// As if it had been said before.
  public var prompt: String?
  /// Without them, a segment for each window.
  public var timestamps = true
  /// What was said in a window is the prompt of the next.
  public var usesPreviousText = true
  /// Of what is drawn.
  public var seed: UInt64 = 0

  public init(language: String? = nil) { self.language = language }

  /// Throws what `call` would, before there is a thread.
  func validate() throws(AkunuError) { try call { _ throws(AkunuError) in } }

  func call<Value>(
    _ body: (UnsafePointer<akunu_transcribe_options>) throws(AkunuError) -> Value
  ) throws(AkunuError) -> Value {
    // None, and zero, are "the default" in C, and would not be what was asked for.
    guard !temperatures.isEmpty else { throw .argument("temperatures has none, expected one or more") }
    var given = akunu_transcribe_options()
    given.size = MemoryLayout<akunu_transcribe_options>.size
    given.best_of = try positive(bestOf, "bestOf")
    (given.no_timestamps, given.no_previous_text) = (!timestamps, !usesPreviousText)
    given.seed = seed
    return try withCStrings([language, task.rawValue, prompt]) { strings throws(AkunuError) in
      (given.language, given.task, given.prompt) = (strings[0], strings[1], strings[2])
      return try lend(temperatures) { lent throws(AkunuError) in
        (given.temperatures, given.n_temperatures) = (lent, temperatures.count)
        return try body(&given)
      }
    }
  }
}

/// A number of 1 or more, or 0 for none: "the default" in C.
private func positive(_ number: Int?, _ name: String) throws(AkunuError) -> UInt32 {
  guard let number else { return 0 }
  guard number > 0 else { throw .argument("\(name) is \(number), expected 1 or more, or nil") }
  return try count32(number, name)
}
