// An index of named things, and the first name that is there twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace akunu {

// Sorted indices of `items` by `name`; the second of two equal names, or nothing.
template <class Item, class Name>
const Item* sort_by_name(const std::vector<Item>& items, Name name, std::vector<size_t>& sorted) {
  sorted.resize(items.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
    const int order = name(items[a]).compare(name(items[b]));
    return order != 0 ? order < 0 : a < b;
  });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (name(items[sorted[i - 1]]) == name(items[sorted[i]])) return &items[sorted[i]];
  return nullptr;
}

}  // namespace akunu
