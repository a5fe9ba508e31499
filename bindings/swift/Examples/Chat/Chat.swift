// A conversation, a line at a time: swift run chat model.gguf
import Akunu
import Foundation

@main
struct Chat {
  static func main() async {
    guard CommandLine.arguments.count == 2 else {
      fail("usage: chat MODEL", code: 2)
    }
    do {
      let model = try await Model.load(CommandLine.arguments[1])
      var messages: [Message] = []
      while let line = ask() {
        messages.append(.user(line))
        var reply = ""
        for try await piece in try model.chat(messages, GenerateOptions(maxTokens: 256)) {
          reply += piece.text
          write(piece.text)
        }
        write("\n")
        messages.append(.assistant(reply))
      }
    } catch {
      fail("\(error)", code: 1)
    }
  }

  static func ask() -> String? {
    write("> ")
    return readLine()
  }

  static func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }

  static func fail(_ why: String, code: Int32) -> Never {
    FileHandle.standardError.write(Data("\(why)\n".utf8))
    exit(code)
  }
}
