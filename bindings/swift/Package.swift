// swift-tools-version: 6.0
import PackageDescription

// libakunu is found by pkg-config: `cmake --install` puts akunu.pc beside it (docs/reference/c.md).
let package = Package(
  name: "Akunu",
  platforms: [.macOS(.v13)],
  products: [
    .library(name: "Akunu", targets: ["Akunu"]),
    .executable(name: "chat", targets: ["chat"]),
  ],
  targets: [
    .systemLibrary(name: "CAkunu", pkgConfig: "akunu"),
    .target(name: "Akunu", dependencies: ["CAkunu"]),
    .executableTarget(name: "chat", dependencies: ["Akunu"], path: "Examples/Chat"),
    .testTarget(name: "AkunuTests", dependencies: ["Akunu"]),
  ],
  swiftLanguageModes: [.v6]
)
