// The functions of a format, for one row: a warp takes four weight rows at a time, or two where there are few.
#pragma once

#define AKUNU_STAGED(kind, name, F, outputs) \
  template                                   \
      [[host_name("staged_" #kind "_" #name  \
                  "_o" #outputs)]] [[kernel]] decltype(kind<F, 1, outputs>) kind<F, 1, outputs>;
#define AKUNU_STAGED_GROUP(name, F, outputs)                         \
  template [[host_name("staged_matvec_group_" #name "_o" #outputs)]] \
  [[kernel]] decltype(matvec_group<F, F, 1, outputs>) matvec_group<F, F, 1, outputs>;
#define AKUNU_STAGED_MATVEC(name, F)     \
  AKUNU_STAGED(matvec, name, F, 2)       \
  AKUNU_STAGED(matvec, name, F, 4)       \
  AKUNU_STAGED_GROUP(name, F, 2)         \
  AKUNU_STAGED_GROUP(name, F, 4)         \
  AKUNU_STAGED(matvec_gated, name, F, 2) \
  AKUNU_STAGED(matvec_gated, name, F, 4)
