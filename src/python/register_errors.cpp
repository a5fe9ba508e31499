#include <pybind11/pybind11.h>

#include "core/error.h"
#include "register.h"

namespace akunu::python {
namespace {

// The exception classes live in Python (akunu/errors.py), where users read them.
void raise(const char* class_name, const std::exception& error) {
  pybind11::object type = pybind11::module_::import("akunu.errors").attr(class_name);
  PyErr_SetString(type.ptr(), error.what());
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
    } catch (const ArgumentError& error) {
      raise("ArgumentError", error);
    } catch (const Error& error) {
      raise("AkunuError", error);
    }
  });
}

}  // namespace akunu::python
