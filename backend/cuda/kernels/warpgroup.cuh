// The PTX instructions that prompts use on Hopper (sm_90a), and of which streamed rows use the copies (sm_90 and later): wgmma with A in registers or in shared
// memory and B in shared memory, copies (cp.async, cp.async.bulk), and mbarriers.
// The tests emulate the same functions on the CPU, after the PTX ISA
// (tests/kernels/warpgroup_words.h).
//
// 1. Four consecutive warps are a warpgroup. One wgmma computes D [64 x 128]: warp w has rows 16 w to 16 w + 15.
// 2. A [64 x 16]: each lane has a fragment of four registers with two f16 numbers each, as of mma.m16n8k16: with
//    g = lane / 4 and t = lane % 4, rows g and g + 8 of columns 2 t and 2 t + 1, then of columns 2 t + 8 and 2 t + 9.
//    D: for each 8 columns it has (g, 2 t), (g, 2 t + 1), (g + 8, 2 t) and (g + 8, 2 t + 1).
// 3. B [128 x 16] is K-major with the 128-byte swizzle: rows of 64 f16 numbers (128 bytes), 8 rows in 1,024 aligned
//    bytes; the 16-byte chunk c of row r is stored at c ^ (r % 8). The next 16 of k begin 32 bytes later.
// 4. Of attention (warpgroup_attention.cuh), A of the scores lies in shared memory too, K-major as B. B of the results
//    [16 x 64 or 128] is read the other way, MN-major: rows are those of k. The next 16 of k begin 2,048 bytes later.
#pragma once

#include "cuda/kernels/language.cuh"

namespace gpu {

// The instructions exist on sm_90a only. For other architectures the kernels are empty, and the host launches none.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kHasWarpgroups = true;
#else
constexpr bool kHasWarpgroups = false;
#endif

// Bulk copies and their barriers exist from sm_90 on.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool kHasBulkCopies = true;
#else
constexpr bool kHasBulkCopies = false;
#endif

// --- f16 numbers, two in a 32-bit register -----------------------------------------------------------

AKUNU_DEVICE uint add_halves(uint a, uint b) {
  uint sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}
AKUNU_DEVICE uint multiply_halves(uint a, uint b) {
  uint product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
AKUNU_DEVICE uint fma_halves(uint a, uint b, uint c) {
  uint sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
// Two numbers, each rounded to f16; the first in the lower 16 bits.
AKUNU_DEVICE uint pack_halves(float first, float second) {
  uint both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
// The same of numbers that are not negative, rounded down.
AKUNU_DEVICE uint pack_halves_down(float first, float second) {
  uint both;
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
AKUNU_DEVICE float low_half(uint both) {
  float value;
  asm("{.reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}"
      : "=f"(value)
      : "r"(both));
  return value;
}
AKUNU_DEVICE float high_half(uint both) {
  float value;
  asm("{.reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high;}"
      : "=f"(value)
      : "r"(both));
  return value;
}
// (word & mask) | bits
AKUNU_DEVICE uint put_bits(uint word, uint mask, uint bits) {
  uint both;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(both) : "r"(word), "r"(mask), "r"(bits));
  return both;
}
AKUNU_DEVICE uint choose_bytes(uint low, uint high, uint which) {
  return __byte_perm(low, high, which);
}

// --- mbarriers ---------------------------------------------------------------------------------------

AKUNU_DEVICE uint shared_address(const void* at) { return uint(__cvta_generic_to_shared(at)); }

// A phase ends when `n_threads` threads have arrived and all bytes that the barrier expects have been copied.
AKUNU_DEVICE void begin_barrier(ulong* barrier, uint n_threads) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(n_threads)
               : "memory");
}
// Makes initialised barriers visible to bulk copies and to all threads of the block.
AKUNU_DEVICE void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
}
AKUNU_DEVICE void arrive(ulong* barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
AKUNU_DEVICE void arrive_expecting(ulong* barrier, uint n_bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(n_bytes)
               : "memory");
}
// Waits until the phase of this parity has ended. The first phase of a new barrier has parity 0; the one before it,
// which counts as ended, 1.
AKUNU_DEVICE void wait_for_phase(ulong* barrier, uint parity) {
  asm volatile(
      "{\n"
      ".reg .pred is_over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 is_over, [%0], %1;\n"
      "@!is_over bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// --- cp.async.bulk -----------------------------------------------------------------------------------

// From global to shared memory. Both addresses and the number of bytes are multiples of 16.
AKUNU_DEVICE void copy_bytes(void* to, const void* from, uint n_bytes, ulong* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(n_bytes), "r"(shared_address(barrier))
      : "memory");
}
// Between ordinary stores to global memory and bulk copies of the same bytes.
AKUNU_DEVICE void stores_before_copies() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

// Between what a thread has written to shared memory, copies that it waited for included, and wgmma that read it.
AKUNU_DEVICE void stores_before_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- Named barriers: `n_threads` threads, whole warps, come -------------------------------------------

AKUNU_DEVICE void meet_at(uint barrier, uint n_threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(n_threads) : "memory");
}
// Comes without waiting for the others.
AKUNU_DEVICE void come_to(uint barrier, uint n_threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(n_threads) : "memory");
}

// --- Clusters: blocks that run at the same time --------------------------------------------------------

// The blocks of a cluster have divided a tile, and each has written its part of the results to global memory. Waits until all have:
// then each finishes a share. Returns the first share of this block and the one after its last. (Fences as in last_to_meet: other
// blocks' results must not come from this multiprocessor's L1 cache.)
AKUNU_DEVICE uint2 shares_after_cluster(uint, uint block, uint, uint, uint, uint) {
  __threadfence();
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
#endif
  __threadfence();
  return {block, block + 1};
}

// 2^x, off by 2^-22 of it at most; 0 below 2^-126.
AKUNU_DEVICE float power_of_two_near(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
// A number that is not a number counts for nothing.
AKUNU_DEVICE float larger_of(float a, float b) { return ::fmaxf(a, b); }

// The maximum over the threads of the block. `memory`: a float for each warp.
AKUNU_DEVICE float max_of_threadgroup(float value, float* memory, uint thread_index,
                                      uint n_threads) {
  value = simd_max(value);
  if (thread_index % 32 == 0) memory[thread_index / 32] = value;
  __syncthreads();
  for (uint i = 0; i < n_threads / 32; ++i) value = max(value, memory[i]);
  return value;
}

// Loads and stores in global memory, at addresses that the compiler would take for generic ones.
AKUNU_DEVICE float load_number(const float* at) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];"
               : "=f"(value)
               : "l"(__cvta_generic_to_global(at))
               : "memory");
  return value;
}
AKUNU_DEVICE void store_number(float* at, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "f"(value)
               : "memory");
}

// --- setmaxnreg: registers move from the warps that copy to those that multiply ----------------------

template <uint kRegisters>
AKUNU_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <uint kRegisters>
AKUNU_DEVICE void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// --- wgmma -------------------------------------------------------------------------------------------

// The matrix descriptor of B with the 128-byte swizzle: 1,024 bytes from one group of 8 rows to the next.
AKUNU_DEVICE ulong inputs_at(const void* at) {
  return ulong((shared_address(at) & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
// With the 64-byte swizzle: rows of 64 bytes, 512 bytes from one group of 8 rows to the next; the 16-byte chunk c of row r is
// stored at c ^ (r / 2 % 4).
AKUNU_DEVICE ulong middle_inputs_at(const void* at) {
  return ulong((shared_address(at) & 0x3ffffu) >> 4) | 1ull << 16 | 32ull << 32 | 2ull << 62;
}
// With the 128-byte swizzle, read MN-major: `slab_bytes` from 64 columns to the next 64.
AKUNU_DEVICE ulong values_at(const void* at, uint slab_bytes) {
  return ulong((shared_address(at) & 0x3ffffu) >> 4) | ulong(slab_bytes / 16) << 16 | 64ull << 32 |
         1ull << 62;
}
// The descriptor of what begins `n_bytes` later, a multiple of 16.
AKUNU_DEVICE ulong further(ulong inputs, uint n_bytes) { return inputs + n_bytes / 16; }

// Keeps the compiler from computing A's registers between two wgmma.
AKUNU_DEVICE void settle(uint (&a)[4]) {
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
}
// ptxas moves a wait for products up over arithmetic that was meant to run beside them, but not over a store that depends
// on that. Here is one, which never happens: `sum` is not negative.
AKUNU_DEVICE void compute_before_wait(float sum, uint* at) {
  if (sum < 0.0f) *at = 0;
}
// After the last change of registers that a wgmma reads or accumulates into, and before it.
AKUNU_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
AKUNU_DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits for all groups of wgmma but the last kPending. Tells the compiler that the accumulators of those that end change
// here, and not before.
template <uint kPending = 0, uint kCount>
AKUNU_DEVICE void wait_for_products(float (&sums)[kCount]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#pragma unroll
  for (uint i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
// add_product: D [64 x 128] += A [64 x 16] B [128 x 16]^T in f16; where `adds` is 0, D = A B^T. (`adds` must not be
// known at compile time: ptxas would then take new registers for D, and there are none.)
// add_product_bfloat16: the same in bfloat16.
// clang-format off
#define AKUNU_ADD_PRODUCT(name, type)                                                               \
  AKUNU_DEVICE void name(float (&d)[64], const uint (&a)[4], ulong inputs, uint adds) {             \
    asm volatile(                                                                                   \
        "{\n.reg .pred adds;\nsetp.ne.u32 adds, %69, 0;\n"                                         \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " "                            \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
        "{%64, %65, %66, %67}, %68, adds, 1, 1, 0;\n}\n"                                           \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(inputs), "r"(adds));                      \
  }
AKUNU_ADD_PRODUCT(add_product, "f16")
AKUNU_ADD_PRODUCT(add_product_bfloat16, "bf16")
#undef AKUNU_ADD_PRODUCT
// The same of 64, 32 and 16 columns.
AKUNU_DEVICE void add_product(float (&d)[32], const uint (&a)[4], ulong inputs, uint adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.u32 adds, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, adds, 1, 1, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(inputs), "r"(adds));
}
AKUNU_DEVICE void add_product(float (&d)[16], const uint (&a)[4], ulong inputs, uint adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.u32 adds, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19}, %20, adds, 1, 1, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(inputs), "r"(adds));
}
AKUNU_DEVICE void add_product(float (&d)[8], const uint (&a)[4], ulong inputs, uint adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.u32 adds, %13, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, adds, 1, 1, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(inputs), "r"(adds));
}
// add_scores: D [64 x 128] += A [64 x 16] B [128 x 16]^T in f16, A in shared memory too; where `adds` is 0, D = A B^T.
// add_values: D [64 x 64 or 128] += A [64 x 16] B [16 x 64 or 128] in f16, B MN-major.
AKUNU_DEVICE void add_scores(float (&d)[64], ulong queries, ulong keys, uint adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.u32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, adds, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(queries), "l"(keys), "r"(adds));
}
AKUNU_DEVICE void add_values(float (&d)[64], const uint (&a)[4], ulong values) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.eq.u32 adds, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, adds, 1, 1, 1;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(values));
}
AKUNU_DEVICE void add_values(float (&d)[32], const uint (&a)[4], ulong values) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.eq.u32 adds, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, adds, 1, 1, 1;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(values));
}
// clang-format on

}  // namespace gpu
