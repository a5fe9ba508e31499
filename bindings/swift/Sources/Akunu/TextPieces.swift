/// Turns tokens into text as they come, and never gives out half a character. The pieces together are what
/// `Tokenizer.decode` makes of the tokens behind `last`.
///
/// What a token adds depends on the one before it: a space that opens a text is not part of it. So what is new is
/// what decoding from the last whole piece on has more than that piece alone.
struct TextPieces {
  private let tokenizer: Tokenizer
  private var whole: [UInt32]  // those of the last piece: at their end, a character ends
  private var pending: [UInt32] = []
  private var tail: [UInt8] = []  // the last bytes of `pending`

  /// Goes on after this token, the prompt's last.
  init(_ tokenizer: Tokenizer, after last: UInt32?) {
    self.tokenizer = tokenizer
    whole = last.map { [$0] } ?? []
  }

  /// The text that is complete with this token, often none.
  mutating func push(_ token: UInt32) throws(AkunuError) -> String {
    pending.append(token)
    // Control tokens, and a lone space whose fate the next token decides.
    if try tokenizer.decode([token], skipSpecial: true).isEmpty { return "" }
    tail = try (tail + tokenizer.bytes(of: token)).suffix(3)
    return endsWithinCharacter(tail) ? "" : try take()
  }

  /// What is left: U+FFFD for an unfinished character.
  mutating func finish() throws(AkunuError) -> String {
    pending.isEmpty ? "" : try take()
  }

  private mutating func take() throws(AkunuError) -> String {
    let before = try tokenizer.decode(whole, skipSpecial: true)
    let all = try tokenizer.decode(whole + pending, skipSpecial: true)
    (whole, pending, tail) = (pending, [], [])
    // By bytes: a mark that joins the character before it would make one of both.
    return String(decoding: all.utf8.dropFirst(before.utf8.count), as: UTF8.self)
  }
}

/// Whether UTF-8 ends before its last character does.
private func endsWithinCharacter(_ bytes: [UInt8]) -> Bool {
  for (behind, byte) in bytes.reversed().enumerated() {
    switch byte {
    case 0x80...0xBF: continue  // goes on with a character
    case 0xC2...0xDF: return behind < 1
    case 0xE0...0xEF: return behind < 2
    case 0xF0...0xF4: return behind < 3
    default: return false
    }
  }
  return false
}
