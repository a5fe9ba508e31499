"""Type-checks the host side of the Metal backend against the real metal-cpp, without a Mac.

    python check_host.py [--headers DIR] [--compiler clang++]

The headers are those of the macOS wheel of mlx-metal, which pip downloads unless DIR has them. Of
the system headers that they include, only what they name is declared here. Needs clang: Metal's
interfaces have blocks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# What the system's headers declare, as far as metal-cpp and system_macos.cpp use it.
STUBS = {
    "TargetConditionals.h": """
#define TARGET_OS_OSX 1
#define TARGET_OS_MAC 1
#define TARGET_OS_IPHONE 0
""",
    "CoreFoundation/CoreFoundation.h": """
#include <math.h>
#include <stddef.h>
#include <stdint.h>
typedef double CFTimeInterval;
typedef const void* CFTypeRef;
typedef const struct __CFString* CFStringRef;
typedef const struct __CFAllocator* CFAllocatorRef;
typedef const struct __CFNumber* CFNumberRef;
typedef unsigned long CFTypeID;
typedef long CFIndex;
typedef CFIndex CFNumberType;
enum : CFNumberType { kCFNumberSInt32Type = 3 };
extern "C" const CFAllocatorRef kCFAllocatorDefault;
extern "C" CFTypeID CFGetTypeID(CFTypeRef);
extern "C" CFTypeID CFNumberGetTypeID(void);
extern "C" unsigned char CFNumberGetValue(CFNumberRef, CFNumberType, void*);
extern "C" void CFRelease(CFTypeRef);
extern "C" CFStringRef __CFStringMakeConstantString(const char*);
#define CFSTR(text) __CFStringMakeConstantString("" text "")
""",
    "IOKit/IOKitLib.h": """
#include <CoreFoundation/CoreFoundation.h>
#include <mach/mach.h>
typedef mach_port_t io_object_t;
typedef io_object_t io_service_t;
typedef io_object_t io_registry_entry_t;
typedef uint32_t IOOptionBits;
typedef struct __CFDictionary* CFMutableDictionaryRef;
typedef const struct __CFDictionary* CFDictionaryRef;
extern "C" const mach_port_t kIOMainPortDefault;
#define IO_OBJECT_NULL ((io_object_t)0)
extern "C" CFMutableDictionaryRef IOServiceMatching(const char*);
extern "C" io_service_t IOServiceGetMatchingService(mach_port_t, CFDictionaryRef);
inline io_service_t IOServiceGetMatchingService(mach_port_t port, CFMutableDictionaryRef matching) {
  return IOServiceGetMatchingService(port, (CFDictionaryRef)matching);
}
extern "C" CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t, CFStringRef,
                                                     CFAllocatorRef, IOOptionBits);
extern "C" kern_return_t IOObjectRelease(io_object_t);
""",
    "IOSurface/IOSurfaceRef.h": "typedef struct __IOSurface* IOSurfaceRef;\n",
    "dispatch/dispatch.h": """
typedef struct dispatch_queue_s* dispatch_queue_t;
typedef struct dispatch_data_s* dispatch_data_t;
""",
    "mach/mach.h": """
#include <stdint.h>
typedef int kern_return_t;
typedef unsigned int mach_port_t;
typedef mach_port_t task_id_token_t;
""",
    "objc/objc.h": """
typedef struct objc_class* Class;
struct objc_object { Class isa; };
typedef struct objc_object* id;
typedef struct objc_selector* SEL;
typedef bool BOOL;
""",
    "objc/runtime.h": """
#include <objc/objc.h>
typedef struct objc_object Protocol;
extern "C" Class objc_lookUpClass(const char*);
extern "C" Class objc_getClass(const char*);
extern "C" Protocol* objc_getProtocol(const char*);
extern "C" SEL sel_registerName(const char*);
""",
    "objc/message.h": """
#include <objc/objc.h>
extern "C" id objc_msgSend(id, SEL, ...);
extern "C" double objc_msgSend_fpret(id, SEL, ...);
extern "C" void objc_msgSend_stret(id, SEL, ...);
""",
}


def download_headers(folder: Path) -> Path:
    """The include folder of metal-cpp, out of the macOS wheel of mlx-metal."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    wheel_of = ["--only-binary=:all:", "--platform", "macosx_14_0_arm64"]
    subprocess.run([*download, *wheel_of, "mlx-metal"], check=True)
    (wheel,) = folder.glob("mlx_metal-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        wanted = [name for name in archive.namelist() if "/metal_cpp/" in name]
        archive.extractall(folder, wanted)
    return folder / "mlx" / "include" / "metal_cpp"


def write_stubs(folder: Path) -> Path:
    """The folder of declarations of the system."""
    for name, text in STUBS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#pragma once\n{text}")
    return folder


def check(compiler: str, headers: Path, stubs: Path) -> int:
    """Number of files that do not compile; the compiler says why."""
    options = ["-std=c++20", "-fblocks", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion"]
    options += ["-Wshadow", "-Werror", f"-I{ROOT / 'src'}", f"-I{ROOT / 'backend'}"]
    options += ["-DAKUNU_METAL", "-isystem", str(headers), "-isystem", str(stubs)]
    sources = sorted((ROOT / "backend" / "metal").glob("*.cpp"))
    sources.append(ROOT / "backend" / "registry.cpp")
    failed = 0
    for source in sources:
        result = subprocess.run([compiler, *options, str(source)], check=False)
        failed += result.returncode != 0
        print(f"{source.relative_to(ROOT)}: {'failed' if result.returncode else 'ok'}", flush=True)
    return failed


def main() -> int:
    """Returns 1 when a file does not compile."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--headers", type=Path, help="folder of metal-cpp; downloaded otherwise")
    parser.add_argument("--compiler", default="clang++")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        headers = arguments.headers or download_headers(folder / "wheel")
        failed = check(arguments.compiler, headers, write_stubs(folder / "system"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
