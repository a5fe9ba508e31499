// matmul_group and norm_matmul_group of up to 16 rows, of the formats that quantised models mix in q, k
// and v: Q2_K to Q5_K_M give v more bits, in some layers or all. kernel_table_matmul.cpp names them.
#include "metal/kernels/formats_k.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC_PAIR(q2_k_q3_k, Q2_K, Q3_K)
AKUNU_MATVEC_PAIR(q2_k_q4_k, Q2_K, Q4_K)
AKUNU_MATVEC_PAIR(q3_k_q4_k, Q3_K, Q4_K)
AKUNU_MATVEC_PAIR(q3_k_q5_k, Q3_K, Q5_K)
AKUNU_MATVEC_PAIR(q4_k_q5_k, Q4_K, Q5_K)
AKUNU_MATVEC_PAIR(q4_k_q6_k, Q4_K, Q6_K)
AKUNU_MATVEC_PAIR(q5_k_q6_k, Q5_K, Q6_K)
