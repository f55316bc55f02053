#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sorot/dtype.h"

namespace sorot::tools {

/// Which features of an operator were seen at work, in which dtype and on which kernel.
class Coverage {
 public:
  Coverage(std::vector<std::string> features, std::string device, std::vector<std::string> kernels);

  /// A run on a kernel that had these features (by index).
  void count(const std::string& kernel, const std::string& variant, DType dtype,
             const std::vector<std::size_t>& features);

  /// A kernel said that it does not serve such a run.
  void count_refused(const std::string& kernel, DType dtype, const std::vector<std::size_t>& features);

  void print_table() const;

  /// What is missing, a line each: features met fewer than 10 times where a kernel serves them, instantiations of this
  /// build never launched.
  std::vector<std::string> gaps(const std::string& op) const;

 private:
  struct Cell {
    int runs = 0;
    int refused = 0;
  };
  using Row = std::array<Cell, 4>;  ///< by dtype, as in kDTypes

  std::vector<std::string> features_;
  std::string device_;
  std::vector<std::string> kernels_;
  std::map<std::string, std::vector<Row>> cells_;  ///< by kernel; rows by feature
  std::map<std::string, Row> totals_;
  std::set<std::pair<std::string, std::string>> launched_;  ///< kernel, variant
};

}  // namespace sorot::tools
