// _core.run_operation, _core.operations, _core.step_dtypes, _core.devices: one command on one
// device, for tests of the kernel contract (docs/kernels.md).
//
// 1. What it does. Copies NumPy arrays into buffers of the device, compiles one command, runs it
//    and copies back. Guard bytes around every operand show what a kernel writes beside it.
// 2. What bounds it. Nothing: it is for tests, and for `tools`.
// 3. Where to change it. Everything goes through the Device interface (core/device.h), so a new
//    backend is tested by its name, and a new operation by its row in core/operation.cpp.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "core/device.h"
#include "core/error.h"
#include "kernel_structs.h"
#include "register.h"
#include "registry.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// Bytes before and after every operand; a kernel that writes them is caught.
constexpr uint64_t kGuardBytes = 256;
constexpr std::byte kGuard{0xa5};
// Fills outputs before a kernel runs. As a float32, a float16 or a scale this is NaN; as an index, kNone.
constexpr std::byte kPoison{0xff};

constexpr std::chrono::minutes kTimeout{5};

using Bytes = py::array_t<uint8_t>;

std::span<const std::byte> bytes_of(const py::array& array, const std::string& what) {
  if ((array.flags() & py::array::c_style) == 0)
    throw ArgumentError(what + " must be a C-contiguous array");
  return {static_cast<const std::byte*>(array.data()), static_cast<size_t>(array.nbytes())};
}

Bytes to_array(std::span<const std::byte> bytes) {
  Bytes array(static_cast<py::ssize_t>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(array.mutable_data()));
  return array;
}

template <class T>
std::vector<T> structs_of(const std::string& bytes, const std::string& what) {
  if (bytes.size() % sizeof(T) != 0)
    throw ArgumentError(what + " has " + std::to_string(bytes.size()) +
                        " bytes, expected a multiple of " + std::to_string(sizeof(T)));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The value of `Enum` whose name is `wanted`, among the first `n`.
template <class Enum>
Enum enum_from_name(const std::string& wanted, uint32_t n, const std::string& what) {
  std::string known;
  for (uint32_t i = 0; i < n; ++i) {
    const auto value = static_cast<Enum>(i);
    if (name_of(value) == wanted) return value;
    known += (i > 0 ? ", " : "") + std::string(name_of(value));
  }
  throw ArgumentError(what + " is '" + wanted + "'; possible are " + known);
}

Format format_named(const std::string& wanted) {
  if (const std::optional<Format> format = format_from_name(wanted)) return *format;
  throw ArgumentError("there is no format '" + wanted + "'");
}

Extent extent_from_name(const std::string& name) {
  if (name == "rows") return Extent::rows;
  if (name == "head_rows") return Extent::head_rows;
  throw ArgumentError("extent is '" + name + "'; possible are rows and head_rows");
}

std::string_view name_of_kind(OperandKind kind) {
  switch (kind) {
    case OperandKind::weight:
      return "weight";
    case OperandKind::vector:
      return "vector";
    case OperandKind::rows:
      return "rows";
    case OperandKind::activation:
      return "activation";
    case OperandKind::head_rows:
      return "head_rows";
    case OperandKind::cache:
      return "cache";
    case OperandKind::log:
      return "log";
    case OperandKind::masks:
      return "masks";
    case OperandKind::logprobs:
      return "logprobs";
    case OperandKind::options:
      return "options";
    case OperandKind::parts:
      return "parts";
    case OperandKind::routes:
      return "routes";
    case OperandKind::picked:
      return "picked";
    case OperandKind::exchange:
      return "exchange";
  }
  __builtin_unreachable();
}

std::string_view name_of_access(Access access) {
  switch (access) {
    case Access::in:
      return "in";
    case Access::out:
      return "out";
    case Access::inout:
      return "inout";
  }
  __builtin_unreachable();
}

// Memory of one operand between its guards.
class GuardedBuffer {
 public:
  GuardedBuffer(const std::shared_ptr<Device>& device, std::span<const std::byte> bytes,
                std::string name)
      : device_(device),
        name_(std::move(name)),
        size_(bytes.size()),
        buffer_(device, size_ + 2 * kGuardBytes, "operand") {
    const std::vector<std::byte> guards(size_ + 2 * kGuardBytes, kGuard);
    device_->write(buffer_.binding(), guards);
    device_->write(binding(), bytes);
  }
  // The operand itself, behind the first guard.
  Binding binding() const { return buffer_.binding(kGuardBytes); }
  void poison() { device_->write(binding(), std::vector<std::byte>(size_, kPoison)); }

  // The bytes; throws DeviceError when a guard has changed.
  std::vector<std::byte> read() const {
    std::vector<std::byte> all(size_ + 2 * kGuardBytes);
    device_->read(buffer_.binding(), all);
    const auto first = all.begin() + kGuardBytes, last = all.end() - kGuardBytes;
    const auto is_guard = [](std::byte value) { return value == kGuard; };
    if (!std::all_of(all.begin(), first, is_guard) || !std::all_of(last, all.end(), is_guard))
      throw DeviceError("a kernel wrote outside operand " + name_);
    return {first, last};
  }

 private:
  std::shared_ptr<Device> device_;
  std::string name_;
  uint64_t size_;
  OwnedBuffer buffer_;
};

// What run_operation is told about rows and the pass over them.
struct StepInput {
  std::vector<Row> rows;
  std::vector<Span> spans;
  std::vector<SequenceRecord> sequences;
  std::vector<uint32_t> pages;
  Pass pass;

  void check() const {
    const auto fits = [](uint64_t first, uint64_t n, uint64_t limit, const char* what) {
      if (first + n > limit)
        throw ArgumentError(std::string(what) + " " + std::to_string(first) + " to " +
                            std::to_string(first + n) +
                            " are not all there: " + std::to_string(limit) + " are given");
    };
    fits(pass.first_row, pass.n_rows, rows.size(), "rows");
    fits(pass.first_span, pass.n_spans, spans.size(), "spans");
    for (const Span& span : spans) fits(span.first_row, span.n_rows, rows.size(), "a span's rows");
    for (const Row& row : rows) {
      if (!sequences.empty() && row.sequence >= sequences.size())
        throw ArgumentError("a row names sequence " + std::to_string(row.sequence) + " of " +
                            std::to_string(sequences.size()));
    }
  }
};

class Harness {
 public:
  Harness(std::shared_ptr<Device> device, const std::string& operation_name)
      : device_(std::move(device)) {
    const std::optional<Operation> operation = operation_from_name(operation_name);
    if (!operation) throw ArgumentError("there is no operation '" + operation_name + "'");
    command_.operation = *operation;
  }

  const OperationInfo& info() const { return operation_info(command_.operation); }
  KernelRequest& request() { return request_; }
  Command& command() { return command_; }

  void set_params(const std::string& params) {
    if (params.size() != info().params_size)
      throw ArgumentError(std::string(info().name) + " takes " +
                          std::to_string(info().params_size) + " bytes of parameters, got " +
                          std::to_string(params.size()));
    std::memcpy(command_.params.data(), params.data(), params.size());
  }

  void bind(const py::dict& operands) {
    std::map<size_t, py::object> by_slot;
    for (const auto& [key, value] : operands)
      by_slot[slot_of(key)] = py::reinterpret_borrow<py::object>(value);
    size_t weight_number = 0;
    for (size_t slot = 0; slot < info().operands.size(); ++slot) {
      const OperandInfo& operand = info().operands[slot];
      const auto found = by_slot.find(slot);
      if (found == by_slot.end() && !operand.optional)
        throw ArgumentError(std::string(info().name) + " needs operand " +
                            std::string(operand.name));
      if (operand.kind == OperandKind::weight) {
        if (found != by_slot.end()) bind_weight(slot, weight_number, found->second);
        ++weight_number;
      } else if (found != by_slot.end()) {
        bind_array(slot, found->second);
      }
    }
  }

  py::dict run(const StepInput& input, uint32_t steps) {
    input.check();
    request_.operation = command_.operation;
    request_.params = command_.params;
    command_.pipeline = device_->find_kernel(request_);
    if (!command_.pipeline) {
      const std::string shape = device_->unsupported_shape(request_);
      throw UnsupportedModelError(std::string(device_->backend()) + " (" + device_->chip().level +
                                  ") has no kernel " + std::string(info().name) + " for this" +
                                  (shape.empty() ? "" : ": " + shape));
    }
    const auto memory_of = [&](const auto& values, const char* label) {
      const auto bytes = std::as_bytes(std::span(values));
      OwnedBuffer buffer(device_, std::max<uint64_t>(16, bytes.size()), label);
      device_->write(buffer.binding(), bytes);
      return buffer;
    };
    const OwnedBuffer rows = memory_of(input.rows, "rows"), spans = memory_of(input.spans, "spans"),
                      pages = memory_of(input.pages, "pages"),
                      sequences = memory_of(input.sequences, "sequences"),
                      statuses(device_, std::max<uint64_t>(1, input.rows.size()) * sizeof(Status),
                               "statuses");
    device_->set_limits(
        {.max_rows = static_cast<uint32_t>(std::max(input.rows.size(), input.spans.size())),
         .max_updates = 0,
         .max_update_bytes = 0,
         .max_passes = 1});
    DispatchTable table{{command_}, {std::string(info().name)}, {-1}};
    const Program program = device_->compile(
        std::move(table), {rows.get(), spans.get(), pages.get(), sequences.get(), statuses.get()});
    Pass pass = input.pass;
    pass.program = program;
    Replay replay;
    replay.steps = steps;
    replay.rows = input.rows;
    replay.spans = input.spans;
    replay.passes = std::span(&pass, 1);
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome;
    {
      const WithoutGil without_gil;
      const Ticket ticket = device_->submit(replay);
      outcome = device_->wait(ticket, kTimeout);
      // Even after the time-out, buffers may be released only when the kernel is done.
      if (!outcome.finished) device_->wait(ticket, std::chrono::milliseconds::max());
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    py::dict result = read_operands();
    std::vector<std::byte> row_bytes(input.rows.size() * sizeof(Row));
    device_->read(rows.binding(), row_bytes);
    result["rows"] = to_array(row_bytes);
    result["seconds"] = seconds.count();
    result["steps_done"] = outcome.steps_done;
    py::dict bad;
    for (size_t row = 0; row < outcome.statuses.size(); ++row)
      if (const Status& status = outcome.statuses[row]; status.code != kStatusOk)
        bad[py::int_(row)] = py::make_tuple(status.code, status.position, status.detail);
    result["statuses"] = bad;
    device_->release_program(program);
    if (!outcome.finished)
      throw DeviceError(std::string(info().name) + " did not finish within " +
                        std::to_string(kTimeout.count()) + " minutes");
    return result;
  }

 private:
  size_t slot_of(const py::handle& key) const {
    if (py::isinstance<py::int_>(key)) {
      const auto slot = key.cast<int64_t>();
      if (slot >= 0 && static_cast<size_t>(slot) < info().operands.size())
        return static_cast<size_t>(slot);
    } else {
      const auto name = key.cast<std::string>();
      for (size_t slot = 0; slot < info().operands.size(); ++slot)
        if (info().operands[slot].name == name) return slot;
    }
    throw ArgumentError(std::string(info().name) + " has no operand " +
                        py::str(key).cast<std::string>());
  }

  void bind_array(size_t slot, const py::object& value) {
    const OperandInfo& operand = info().operands[slot];
    const std::string name(operand.name);
    if (!py::isinstance<py::array>(value))
      throw ArgumentError("operand " + name + " must be an array");
    buffers_[slot] =
        std::make_unique<GuardedBuffer>(device_, bytes_of(value.cast<py::array>(), name), name);
    if (operand.access == Access::out) buffers_[slot]->poison();
    command_.operands[slot] = buffers_[slot]->binding();
  }

  void bind_weight(size_t slot, size_t number, const py::object& value) {
    const std::string name(info().operands[slot].name);
    if (!py::isinstance<py::tuple>(value) || py::len(value) != 4)
      throw ArgumentError("operand " + name + " must be a tuple (format, rows, k, bytes)");
    const auto [format_name, n_rows, k, bytes] =
        value.cast<std::tuple<std::string, uint64_t, uint64_t, py::object>>();
    const Format format = format_named(format_name);
    const auto arrays = py::isinstance<py::array>(bytes) ? std::vector{bytes.cast<py::array>()}
                                                         : bytes.cast<std::vector<py::array>>();
    if (arrays.size() > kMaxPlanes)
      throw ArgumentError("operand " + name + " has " + std::to_string(arrays.size()) + " parts");
    // No owner: the caller keeps the arrays alive until the weight is released.
    WeightSource source{.name = name, .format = format, .rows = n_rows, .k = k};
    for (size_t i = 0; i < arrays.size(); ++i) source.parts[i] = {bytes_of(arrays[i], name)};
    weights_.emplace_back(device_, source);
    arrays_.insert(arrays_.end(), arrays.begin(), arrays.end());
    const Weight& weight = weights_.back().get();
    command_.operands[slot] = weight.planes[0];
    std::copy(weight.planes.begin() + 1, weight.planes.end(),
              &command_.operands[plane_slot(static_cast<uint32_t>(number), 1)]);
    request_.weights.at(number) = format;
  }

  py::dict read_operands() const {
    py::dict result;
    for (const auto& [slot, buffer] : buffers_) {
      const std::vector<std::byte> bytes = buffer->read();
      if (info().operands[slot].access != Access::in) result[py::int_(slot)] = to_array(bytes);
    }
    return result;
  }

  std::shared_ptr<Device> device_;
  Command command_;
  KernelRequest request_;
  std::map<size_t, std::unique_ptr<GuardedBuffer>> buffers_;
  std::vector<py::array> arrays_;  // outlive the weights that map them
  std::vector<OwnedWeight> weights_;
};

uint32_t count_head_rows(const std::vector<Row>& rows) {
  uint32_t n = 0;
  for (const Row& row : rows)
    if (row.head_row != kNone) n = std::max(n, row.head_row + 1);
  return n;
}

py::dict run_operation(const std::string& operation, const py::dict& operands,
                       const py::bytes& params, const py::bytes& rows, const py::bytes& spans,
                       const py::object& pages, const py::bytes& sequences,
                       const std::string& device, uint32_t threads, const std::string& isa,
                       const std::string& row_class, const std::string& activation,
                       const std::string& cache, const std::string& extent, uint32_t repeat,
                       uint32_t first_row, std::optional<uint32_t> n_rows, uint32_t first_head_row,
                       std::optional<uint32_t> n_head_rows, uint32_t first_span,
                       std::optional<uint32_t> n_spans) {
  Harness harness(create_device(device, {.threads = threads, .isa = isa}), operation);
  harness.request().row_class = enum_from_name<RowClass>(row_class, 3, "row_class");
  harness.request().activation =
      enum_from_name<ActivationKind>(activation, kActivationKindCount, "activation");
  harness.request().cache = format_named(cache);
  harness.command().extent = extent_from_name(extent);
  harness.set_params(params);
  harness.bind(operands);

  StepInput input;
  input.rows = structs_of<Row>(rows, "rows");
  input.spans = structs_of<Span>(spans, "spans");
  input.sequences = structs_of<SequenceRecord>(sequences, "sequences");
  if (!pages.is_none()) {
    const auto array = py::array_t<uint32_t, py::array::c_style>::ensure(pages);
    if (!array) throw ArgumentError("pages must be an array of uint32");
    input.pages.assign(array.data(), array.data() + array.size());
  }
  input.pass.first_row = first_row;
  input.pass.n_rows = n_rows.value_or(static_cast<uint32_t>(input.rows.size()));
  input.pass.first_head_row = first_head_row;
  input.pass.n_head_rows = n_head_rows.value_or(count_head_rows(input.rows));
  input.pass.first_span = first_span;
  input.pass.n_spans = n_spans.value_or(static_cast<uint32_t>(input.spans.size()));
  return harness.run(input, repeat);
}

py::list operations() {
  py::list list;
  for (uint32_t i = 0; i < kOperationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    const OperationInfo& info = operation_info(operation);
    py::list operands;
    for (const OperandInfo& operand : info.operands)
      operands.append(py::dict(py::arg("name") = operand.name,
                               py::arg("kind") = name_of_kind(operand.kind),
                               py::arg("access") = name_of_access(operand.access),
                               py::arg("optional") = operand.optional));
    list.append(py::dict(py::arg("name") = info.name, py::arg("operands") = operands,
                         py::arg("params") = params_dtype(operation),
                         py::arg("writes_rows") = info.writes_rows));
  }
  return list;
}

py::list devices() {
  py::list list;
  for (const std::string_view name : backend_names()) {
    std::shared_ptr<Device> device;
    try {
      device = create_device(name);
    } catch (const DeviceError&) {  // built, but no such device is here
      continue;
    }
    const ChipConfig& chip = device->chip();
    py::dict facts(py::arg("backend") = device->backend(), py::arg("name") = chip.name,
                   py::arg("level") = chip.level, py::arg("reason") = chip.reason,
                   py::arg("workers") = chip.workers,
                   py::arg("memory_bytes") =
                       chip.memory_bytes > 0 ? std::optional(chip.memory_bytes) : std::nullopt,
                   py::arg("available_bytes") = device->memory_left().memory,
                   py::arg("max_prompt_rows") = chip.max_prompt_rows,
                   py::arg("max_mixed_rows") = chip.max_mixed_rows,
                   py::arg("max_head_rows") = chip.max_head_rows,
                   py::arg("chain_steps") = chip.chain_steps);
    if (const uint32_t n = n_devices(name); n > 1) facts["gpus"] = n;
    if (chip.processors > 0) facts["processors"] = chip.processors;  // that its threads may run on
    list.append(std::move(facts));
  }
  return list;
}

std::string activation_kind(const std::string& device, const std::string& format,
                            const std::string& row_class, const std::string& isa) {
  DeviceOptions options;
  options.isa = isa;
  return std::string(
      name_of(create_device(device, options)
                  ->activation_kind(format_named(format),
                                    enum_from_name<RowClass>(row_class, 3, "row_class"))));
}

}  // namespace

void register_kernels(py::module_& m) {
  m.def(
      "run_operation", &run_operation, py::arg("operation"), py::kw_only(), py::arg("operands"),
      py::arg("params"), py::arg("rows"), py::arg("spans") = py::bytes(),
      py::arg("pages") = py::none(), py::arg("sequences") = py::bytes(), py::arg("device") = "cpu",
      py::arg("threads") = 1, py::arg("isa") = "", py::arg("row_class") = "single",
      py::arg("activation") = "f32", py::arg("cache") = "f16", py::arg("extent") = "rows",
      py::arg("repeat") = 1, py::arg("first_row") = 0, py::arg("n_rows") = py::none(),
      py::arg("first_head_row") = 0, py::arg("n_head_rows") = py::none(), py::arg("first_span") = 0,
      py::arg("n_spans") = py::none(),
      "Runs one operation on a device. `operands` maps slot (or name) to a C-contiguous array,\n"
      "whose size is the test's business, or for weights to (format, rows, k, bytes), where\n"
      "bytes is an array, or a list of one per part. Operands marked out are filled with 0xff "
      "bytes first. Returns {slot: uint8 array} of what the\n"
      "operation wrote, \"rows\", \"statuses\" ({row: (code, position, detail)} of those that are\n"
      "not well), \"steps_done\" and \"seconds\".\n"
      "Raises UnsupportedModelError where the device lacks the kernel, DeviceError where it\n"
      "wrote next to an operand.");
  m.def("operations", &operations, "Every operation: name, operands, parameters as a NumPy dtype.");
  m.def("step_dtypes", &step_dtypes,
        "The structs of a step as NumPy dtypes: row, span, sequence, logprobs.");
  m.def("backends", &backend_names, "Every backend of this build, whether or not it works here.");
  m.def("activation_kind", &activation_kind, py::arg("device"), py::arg("format"),
        py::arg("row_class") = "single", py::arg("isa") = "",
        "The kind in which a device wants the input of a matmul with a weight in `format`.");
  m.def("devices", &devices, "Every device that works here, with its tuning numbers.");
}

}  // namespace akunu::python
