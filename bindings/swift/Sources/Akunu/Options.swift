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
  // written by tools/options.py: load
  // end of load

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
    // written by tools/options.py: load to C
    // end of load to C
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
// written by tools/options.py: sampling
public struct Sampling: Sendable, Hashable {
  /// 0 (the default) takes the most likely words; higher surprises more.
  public var temperature: Float = 0
  /// Choose among this many likely tokens; 0 (the default): among all.
  public var topK: Int?
  /// Choose among the fewest tokens that reach this sum; default: 1, all.
  public var topP: Float = 1
  /// Drop tokens less likely than this share of the likeliest; default: 0, none.
  public var minP: Float = 0
  /// Choose among the tokens of the most usual surprise, up to this sum; default: 1, all.
  public var typicalP: Float = 1
  /// Drop logits so many standard deviations below the largest; default: 0, none.
  public var topNSigma: Float = 0
  /// How often the likeliest tokens are dropped, for variety; default: 0, never.
  public var xtcProbability: Float = 0
  /// Which those are: all that are this likely but the last of them; default: 0.1.
  public var xtcThreshold: Float = 0.1
  /// Above 1 (the default): what was said lately is less likely.
  public var repetitionPenalty: Float = 1
  /// Above 0 (the default): the less likely, the more often it was said.
  public var frequencyPenalty: Float = 0
  /// Above 0 (the default): less likely, however often it was said.
  public var presencePenalty: Float = 0
  /// Penalties look at so many of the latest tokens; default: 64.
  public var penaltyWindow: Int = 64
  /// The opposite of: Whether penalties and DRY look at the prompt too, or at the reply alone.
  public var noPromptPenalties: Bool = false
  /// DRY: above 0 (the default), going on as it was said before is less likely.
  public var dryMultiplier: Float = 0
  /// DRY: each further token of a repetition costs so many times more; default: 1.75.
  public var dryBase: Float = 1.75
  /// DRY: so many tokens may be repeated before it costs something; default: 2.
  public var dryAllowedLength: Int = 2
  /// DRY looks at so many of the latest tokens; default: all.
  public var dryPenaltyLastN: Int = 2147483647
  /// What is done to the logits, in which order; what is left out is not done.
  public var samplers: [String] = []
  /// The least tokens to generate: the model cannot end its text before.
  public var minTokens: Int?
  /// The same seed gives the same text.
  public var seed: UInt64 = 0

  public init() {}

  func c() throws(AkunuError) -> akunu_sampling {
    var given = akunu_sampling()
    given.size = MemoryLayout<akunu_sampling>.size
    given.temperature = temperature
    given.top_k = try positive(topK, "topK")
    given.top_p = try nonzero(topP, "topP")
    given.min_p = minP
    given.typical_p = try nonzero(typicalP, "typicalP")
    given.top_n_sigma = topNSigma
    given.xtc_probability = xtcProbability
    given.xtc_threshold = try nonzero(xtcThreshold, "xtcThreshold")
    given.repetition_penalty = try nonzero(repetitionPenalty, "repetitionPenalty")
    given.frequency_penalty = frequencyPenalty
    given.presence_penalty = presencePenalty
    given.penalty_window = try positive(penaltyWindow, "penaltyWindow")
    given.no_prompt_penalties = noPromptPenalties
    given.dry_multiplier = dryMultiplier
    given.dry_base = try nonzero(dryBase, "dryBase")
    given.dry_allowed_length = try positive(dryAllowedLength, "dryAllowedLength")
    given.dry_penalty_last_n = try positive(dryPenaltyLastN, "dryPenaltyLastN")
    given.min_tokens = try positive(minTokens, "minTokens")
    given.seed = seed
    return given
  }
}
// end of sampling

/// How a text goes on. Without changes: greedily, until it ends or the context is full.
public struct GenerateOptions: Sendable, Hashable {
  /// `nil`: what the context holds.
  public var maxTokens: Int?
  public var sampling = Sampling()
  /// After these the text ends, beside the model's own.
  public var stopTokens: [UInt32] = []
  /// The model's own stop tokens do not end the text.
  public var ignoresStops = false
  /// The model's own stop tokens cannot be chosen.
  public var bansStops = false
  /// What is added to the logits of tokens; `-Float.infinity` bans one.
  public var logitBias: [UInt32: Float] = [:]
  /// Texts beyond which DRY sees no repetition.
  public var drySequenceBreakers = ["\n", ":", "\"", "*"]
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
    given.ignore_eos = bansStops
    var chosen = try sampling.c()
    let named = adapters.sorted { $0.key < $1.key }
    let biases = logitBias.sorted { $0.key < $1.key }.map { akunu_token_bias(token: $0.key, bias: $0.value) }
    let order = sampling.samplers.isEmpty ? nil : sampling.samplers.joined(separator: ",")
    let texts: [String?] = [order] + drySequenceBreakers + named.map(\.key)
    return try withCStrings(texts) { strings throws(AkunuError) in
      chosen.samplers = strings[0]
      let breakers = Array(strings[1...].prefix(drySequenceBreakers.count))
      let names = strings[(1 + breakers.count)...]
      let weights = zip(names, named).map { akunu_adapter_weight(name: $0, weight: $1.value) }
      return try lend(weights) { adapters throws(AkunuError) in
        try lend(stopTokens) { stops throws(AkunuError) in
          try lend(biases) { biases throws(AkunuError) in
            try lend(breakers) { breakers throws(AkunuError) in
              try lend([chosen]) { chosen throws(AkunuError) in
                given.sampling = chosen
                (given.adapters, given.n_adapters) = (adapters, named.count)
                (given.stop_ids, given.n_stop_ids) = (stops, stopTokens.count)
                (given.logit_bias, given.n_logit_bias) = (biases, logitBias.count)
                given.dry_sequence_breakers = breakers
                given.n_dry_sequence_breakers = drySequenceBreakers.count
                return try body(&given)
              }
            }
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

/// A number that is not 0: that is "the default" in C, and would not be what was asked for.
private func nonzero(_ number: Float, _ name: String) throws(AkunuError) -> Float {
  guard number != 0 else { throw .argument("\(name) is 0, expected another number") }
  return number
}

/// A number of 1 or more, or 0 for none: "the default" in C.
private func positive(_ number: Int?, _ name: String) throws(AkunuError) -> UInt32 {
  guard let number else { return 0 }
  guard number > 0 else { throw .argument("\(name) is \(number), expected 1 or more, or nil") }
  return try count32(number, name)
}
