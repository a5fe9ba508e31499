#include "capi/border.h"

#include <new>
#include <stdexcept>

#include "capi/handles.h"

namespace akunu::capi {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

}  // namespace

akunu_status fail(akunu_status status, const std::string& why) noexcept {
  try {
    last_error() = why;
  } catch (...) {
    last_error().clear();  // there is no memory for the text
  }
  return status;
}

akunu_status caught() noexcept {
  try {
    throw;
  } catch (const ArgumentError& error) {
    return fail(AKUNU_ERROR_ARGUMENT, error.what());
  } catch (const HandleError& error) {
    return fail(AKUNU_ERROR_HANDLE, error.what());
  } catch (const ModelFormatError& error) {
    return fail(AKUNU_ERROR_FILE, error.what());
  } catch (const UnsupportedModelError& error) {
    return fail(AKUNU_ERROR_UNSUPPORTED, error.what());
  } catch (const DeviceError& error) {
    return fail(AKUNU_ERROR_DEVICE, error.what());
  } catch (const OutOfMemoryError& error) {
    return fail(AKUNU_ERROR_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return fail(AKUNU_ERROR_MEMORY, "there is not enough memory");
  } catch (const ContextOverflowError& error) {
    return fail(AKUNU_ERROR_CONTEXT, error.what());
  } catch (const QueueFullError& error) {
    return fail(AKUNU_ERROR_BUSY, error.what());
  } catch (const BusyError& error) {
    return fail(AKUNU_ERROR_BUSY, error.what());
  } catch (const std::exception& error) {
    return fail(AKUNU_ERROR_INTERNAL, error.what());
  } catch (...) {
    return fail(AKUNU_ERROR_INTERNAL, "an exception of an unknown type");
  }
}

std::optional<akunu_status> answered_by_length(size_t n, const void* buffer, size_t capacity,
                                               size_t* length) {
  need(length, "length");
  *length = n;
  if (capacity == 0) return AKUNU_OK;
  need(buffer, "the buffer");
  if (n <= capacity) return std::nullopt;
  return fail(AKUNU_ERROR_SPACE, "the buffer has room for " + std::to_string(capacity) + ", " +
                                     std::to_string(n) + " are needed");
}

akunu_status give_text(std::string_view text, char* buffer, size_t capacity, size_t* length) {
  const auto answer = answered_by_length(text.size() + 1, buffer, capacity, length);
  *length = text.size();
  if (answer) return *answer;
  std::ranges::copy(text, buffer);
  buffer[text.size()] = '\0';
  return AKUNU_OK;
}

}  // namespace akunu::capi

using namespace akunu::capi;

const char* akunu_version(void) { return AKUNU_VERSION; }

const char* akunu_last_error(void) { return last_error().c_str(); }

const char* akunu_status_name(akunu_status status) {
  switch (status) {
    case AKUNU_OK:
      return "AKUNU_OK";
    case AKUNU_ERROR_ARGUMENT:
      return "AKUNU_ERROR_ARGUMENT";
    case AKUNU_ERROR_HANDLE:
      return "AKUNU_ERROR_HANDLE";
    case AKUNU_ERROR_FILE:
      return "AKUNU_ERROR_FILE";
    case AKUNU_ERROR_UNSUPPORTED:
      return "AKUNU_ERROR_UNSUPPORTED";
    case AKUNU_ERROR_DEVICE:
      return "AKUNU_ERROR_DEVICE";
    case AKUNU_ERROR_MEMORY:
      return "AKUNU_ERROR_MEMORY";
    case AKUNU_ERROR_CONTEXT:
      return "AKUNU_ERROR_CONTEXT";
    case AKUNU_ERROR_BUSY:
      return "AKUNU_ERROR_BUSY";
    case AKUNU_ERROR_SPACE:
      return "AKUNU_ERROR_SPACE";
    case AKUNU_ERROR_INTERNAL:
      return "AKUNU_ERROR_INTERNAL";
  }
  return "no status of akunu";
}
