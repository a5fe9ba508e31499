#include "quantize/rows.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

const RowCoder* find_coder(uint32_t type) {
  for (const auto& family :
       {float_coders(), blocks_32_coders(), super_block_coders(), table_coders()})
    for (const RowCoder& coder : family)
      if (coder.type == type) return &coder;
  return nullptr;
}

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
