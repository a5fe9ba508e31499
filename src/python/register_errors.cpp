#include <pybind11/pybind11.h>

#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/memory_left.h"
#include "core/process_limits.h"
#include "register.h"

namespace akunu::python {
namespace {

// The exception classes live in Python (akunu/errors.py), where users read them.
void raise(const char* class_name, const std::exception& error) {
  pybind11::object type = pybind11::module_::import("akunu.errors").attr(class_name);
  // A message may quote a file, whose strings need not be UTF-8.
  const auto length = static_cast<pybind11::ssize_t>(std::strlen(error.what()));
  const auto message = pybind11::reinterpret_steal<pybind11::object>(
      PyUnicode_DecodeUTF8(error.what(), length, "backslashreplace"));
  if (message) PyErr_SetObject(type.ptr(), message.ptr());
}

// The message for small allocations, which are not checked against available memory beforehand.
std::string refused_memory() {
  std::string what = "the system refused memory";
  if (const std::optional<uint64_t> left = address_space_left())
    what += "; " + describe_address_space(*left);
  return what;
}

}  // namespace

void register_errors(pybind11::module_&) {
  pybind11::register_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(pointer);
    } catch (const ModelFormatError& error) {
      raise("ModelFormatError", error);
    } catch (const UnsupportedModelError& error) {
      raise("UnsupportedModelError", error);
    } catch (const DeviceError& error) {
      raise("DeviceError", error);
    } catch (const OutOfMemoryError& error) {
      raise("OutOfMemoryError", error);
    } catch (const ContextOverflowError& error) {
      raise("ContextOverflowError", error);
    } catch (const QueueFullError& error) {
      raise("QueueFullError", error);
    } catch (const GrammarLimitError& error) {
      raise("GrammarLimitError", error);
    } catch (const DeadEndError& error) {
      raise("DeadEndError", error);
    } catch (const ArgumentError& error) {
      raise("ArgumentError", error);
    } catch (const Error& error) {
      raise("AkunuError", error);
    } catch (const std::bad_alloc&) {
      raise("OutOfMemoryError", OutOfMemoryError(refused_memory()));
    }
  });
}

}  // namespace akunu::python
