// 1 to 16 rows by streamed weights: K formats (kernels/streamed_matmul.h)
#include "cuda/kernels/streamed_matmul.h"

AKUNU_STREAMED_MATMUL(q3_k, Q3_KStreamed)
AKUNU_STREAMED_MATMUL(q4_k, Q4_KStreamed)
AKUNU_STREAMED_MATMUL(q5_k, Q5_KStreamed)
AKUNU_STREAMED_MATMUL(q6_k, Q6_KStreamed)
