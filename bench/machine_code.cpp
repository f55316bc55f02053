#include "bench/machine_code.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <istream>
#include <stdexcept>
#include <vector>

#include "cuda/attention/attention_sm80.h"

namespace sorot::bench {
namespace {

/// Fields of a line; those in double quotes may hold commas.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::size_t column(const std::vector<std::string>& header, const char* name) {
  const auto at = std::find(header.begin(), header.end(), name);
  if (at == header.end()) throw std::runtime_error(std::string("table of machine code: there is no column ") + name);
  return static_cast<std::size_t>(at - header.begin());
}

double number(const std::string& text, const std::string& where) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (used == text.size() && used > 0) return value;
  throw std::runtime_error("table of machine code, " + where + ": '" + text + "' is no number");
}

/// "256 HMMA", "128 FFMA"
Unit unit_of(const std::string& pass, const std::string& where) {
  const std::string unit = pass.substr(std::min(pass.find(' '), pass.size() - 1) + 1);
  if (unit == "HMMA") return Unit::mma;
  if (unit == "FFMA") return Unit::fma;
  throw std::runtime_error("table of machine code, " + where + ": a pass of '" + pass + "', expected HMMA or FFMA");
}

std::string element_of(const std::string& dtype) {
  return dtype == "f32" ? "float" : dtype == "f16" ? "float16" : dtype == "bf16" ? "bfloat16" : "";
}

/// Place among kSm80Tiles; -1 if there is none of that shape.
int sm80_tile(int queries, int head_dim, int value_dim) {
  for (int n = 0; n < cuda::kSm80TileCount; ++n) {
    const cuda::Sm80Tile& tile = cuda::kSm80Tiles[n];
    if (tile.queries == queries && tile.head_dim == head_dim && tile.value_dim == value_dim) return n;
  }
  return -1;
}

}  // namespace

std::string function_of(const std::string& kernel, const std::string& variant) {
  std::array<char, 8> dtype{};
  int queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  const int found =
      std::sscanf(variant.c_str(), "%7s %dx%d d%d dv%d", dtype.data(), &queries, &keys, &head_dim, &value_dim);
  const std::string element = element_of(dtype.data());
  if (found >= 4 && !element.empty()) {
    if (kernel == "attention_simt") {
      return kernel + "<" + element + ", " + std::to_string(head_dim) + ", " + (queries == 8 ? "true" : "false") + ">";
    }
    const int tile = sm80_tile(queries, head_dim, found == 5 ? value_dim : head_dim);
    const bool general = kernel == "attention_sm80_general";
    if (tile >= 0 && (general || kernel == "attention_sm80_plain")) {
      return "attention_sm80<" + element + ", " + std::to_string(tile) + "ul, " + (general ? "true" : "false") + ">";
    }
  }
  throw std::invalid_argument("'" + kernel + "', '" + variant + "' is no attention kernel for GPUs");
}

MachineCode::MachineCode(std::istream& table) {
  std::string line;
  std::getline(table, line);
  const std::vector<std::string> header = split(line);
  const std::size_t kernel = column(header, "kernel"), arch = column(header, "arch"), pass = column(header, "pass"),
                    loop = column(header, "loop"), mufu = column(header, "mufu");
  while (std::getline(table, line)) {
    const std::vector<std::string> fields = split(line);
    const std::string& where = fields[0];
    if (fields.size() != header.size()) {
      throw std::runtime_error("table of machine code, " + where + ": " + std::to_string(fields.size()) +
                               " fields, expected " + std::to_string(header.size()));
    }
    if (fields[pass].empty()) continue;  // a kernel without a loop that counts
    figures_[{fields[kernel], static_cast<int>(number(fields[arch], where))}] = {
        unit_of(fields[pass], where), number(fields[loop], where), number(fields[mufu], where)};
  }
}

MachineCode MachineCode::of_checkout() {
  const std::string path = SOROT_MACHINE_CODE_TABLE;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return MachineCode(file);
}

LoopFigures MachineCode::of(const std::string& function, int compute_capability) const {
  const auto at = figures_.find({function, compute_capability});
  if (at != figures_.end()) return at->second;
  throw std::runtime_error("table of machine code: nothing on " + function + ", sm_" +
                           std::to_string(compute_capability));
}

}  // namespace sorot::bench
