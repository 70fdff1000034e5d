// CUDA C on the host: the words that kernel texts use, for a C++ compiler. No header is included: that keeps compilation
// at a tenth of a second. A block's threads run one after the other; those of a kernel with barriers are fibers.

typedef __SIZE_TYPE__ size_t;
struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __restrict__ __restrict

// Functions of one argument, in float and double; then those of two and three.
#define UNARY(name) \
  static inline float name(float x) { return __builtin_##name##f(x); } \
  static inline double name(double x) { return __builtin_##name(x); }
#define BINARY(name) \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
  static inline double name(double x, double y) { return __builtin_##name(x, y); }
UNARY(acos) UNARY(acosh) UNARY(asin) UNARY(asinh) UNARY(atan) UNARY(atanh) UNARY(ceil) UNARY(cos) UNARY(cosh)
UNARY(erf) UNARY(erfc) UNARY(exp) UNARY(expm1) UNARY(fabs) UNARY(floor) UNARY(lgamma) UNARY(log) UNARY(log1p)
UNARY(rint) UNARY(round) UNARY(sin) UNARY(sinh) UNARY(sqrt) UNARY(tan) UNARY(tanh) UNARY(trunc)
BINARY(atan2) BINARY(fmod) BINARY(pow) BINARY(fmax) BINARY(fmin)
static inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <class To, class From> static inline To heald_bits(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int bits) { return heald_bits<float>(bits); }
static inline float __uint_as_float(unsigned bits) { return heald_bits<float>(bits); }
static inline unsigned __float_as_uint(float x) { return heald_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return heald_bits<int>(x); }

// Device functions whose CUDA text is PTX. These lines stand in for it, and are all that the host cannot test.
static inline float heald_f32_of_f16(unsigned short h) { return (float)heald_bits<_Float16>(h); }
static inline unsigned short heald_f16_of_f32(float x) { return heald_bits<unsigned short>((_Float16)x); }
static inline unsigned heald_tf32_of_f32(float x) {  // to nearest, ties away from zero
  const unsigned bits = heald_bits<unsigned>(x);
  return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}

#ifdef HEALD_FIBERS
// A fiber gives way at a barrier of its block or warp. A barrier that not all threads reach is a fault of the kernel.
enum { RUNS, AT_BLOCK, AT_WARP, ENDED };
enum { WARP = 32, MOST_THREADS = 1024, STACK = 64 << 10 };
extern "C" void* malloc(size_t);
static void* heald_stack[MOST_THREADS];  // the stack pointer of each fiber that gave way
static char* heald_memory;
static void* heald_scheduler;
static unsigned char heald_state[MOST_THREADS];
static unsigned heald_thread;
static unsigned long long heald_lanes[MOST_THREADS][8];  // what threads of a warp show each other

#if !defined(__x86_64__)
#error "the fibers of cuda_host.h are written for x86-64"
#endif
extern "C" __attribute__((visibility("hidden"))) void heald_switch(void** from, void* to);
asm(".text\n.hidden heald_switch\n.globl heald_switch\nheald_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n");

static void heald_give_way(unsigned char state) {
  heald_state[heald_thread] = state;
  heald_switch(&heald_stack[heald_thread], heald_scheduler);
}
static inline void __syncthreads() { heald_give_way(AT_BLOCK); }
static inline void __syncwarp(unsigned = 0xffffffffu) { heald_give_way(AT_WARP); }

// The value that another thread of the warp shows; `from` is its lane.
template <class T> static inline T heald_exchange(T value, unsigned from) {
  const unsigned first = heald_thread / WARP * WARP;
  heald_lanes[heald_thread][0] = 0;
  __builtin_memcpy(heald_lanes[heald_thread], &value, sizeof value);
  heald_give_way(AT_WARP);
  T got;
  __builtin_memcpy(&got, heald_lanes[first + from % WARP], sizeof got);
  heald_give_way(AT_WARP);
  return got;
}
template <class T> static inline T __shfl_sync(unsigned, T x, int lane) { return heald_exchange(x, (unsigned)lane); }
template <class T> static inline T __shfl_xor_sync(unsigned, T x, int mask) {
  return heald_exchange(x, (heald_thread % WARP) ^ (unsigned)mask);
}
template <class T> static inline T __shfl_down_sync(unsigned, T x, unsigned by) {
  const unsigned lane = heald_thread % WARP;
  return heald_exchange(x, lane + by < WARP ? lane + by : lane);
}

// The sums of a warp, of 16 rows of A and 8 columns of B, counted in words of one or two elements.
template <int EACH, class Element> static inline void heald_mma(float* c, const unsigned* a, const unsigned* b, Element element) {
  const unsigned first = heald_thread / WARP * WARP, lane = heald_thread % WARP;
  unsigned* mine = (unsigned*)heald_lanes[heald_thread];
  for (unsigned i = 0; i < 4; i++) mine[i] = a[i];
  for (unsigned i = 0; i < 2; i++) mine[4 + i] = b[i];
  heald_give_way(AT_WARP);
  for (unsigned e = 0; e < 4; e++)
    for (unsigned k = 0; k < 8; k++) {
      const unsigned left = ((unsigned*)heald_lanes[first + lane / 4 * 4 + k % 4])[e / 2 + k / 4 * 2];
      const unsigned right = ((unsigned*)heald_lanes[first + (lane % 4 * 2 + e % 2) * 4 + k % 4])[4 + k / 4];
      for (unsigned part = 0; part < EACH; part++) c[e] += element(left, part) * element(right, part);
    }
  heald_give_way(AT_WARP);
}
static inline void heald_mma_tf32(float* c, const unsigned* a, const unsigned* b) {
  heald_mma<1>(c, a, b, [](unsigned word, unsigned) { return heald_bits<float>(word & 0xffffe000); });
}
static inline void heald_mma_f16(float* c, const unsigned* a, const unsigned* b) {
  heald_mma<2>(c, a, b, [](unsigned word, unsigned part) { return heald_f32_of_f16(word >> 16 * part); });
}
static inline void heald_mma_bf16(float* c, const unsigned* a, const unsigned* b) {
  heald_mma<2>(c, a, b, [](unsigned word, unsigned part) { return heald_bits<float>(word >> 16 * part << 16); });
}

static void heald_body();  // the kernel, with the arguments of the launch

static void heald_fiber() {
  heald_body();
  heald_give_way(ENDED);
}

static void heald_enter(unsigned thread) {
  threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
  heald_thread = thread;
  heald_state[thread] = RUNS;
  heald_switch(&heald_scheduler, heald_stack[thread]);
}

// The threads of a block, warp by warp, up to the next barrier of the block. Returns how many have not ended; -1 for a
// barrier that some threads do not reach.
static int heald_round(unsigned count) {
  int waiting = 0, ended = 0;
  for (unsigned first = 0; first < count; first += WARP) {
    const unsigned last = first + WARP < count ? first + WARP : count;
    for (bool again = true; again;) {
      unsigned at_warp = 0, others = 0;
      for (unsigned t = first; t < last; t++) {
        if (heald_state[t] == RUNS) heald_enter(t);
        at_warp += heald_state[t] == AT_WARP;
        others += heald_state[t] != AT_WARP;
      }
      if (at_warp && others) return -1;
      again = at_warp != 0;
      if (again) for (unsigned t = first; t < last; t++) heald_state[t] = RUNS;
    }
    for (unsigned t = first; t < last; t++) (heald_state[t] == ENDED ? ended : waiting)++;
  }
  return waiting && ended ? -1 : waiting;
}

static int heald_block(unsigned count) {
  if (!heald_memory) heald_memory = (char*)malloc((size_t)MOST_THREADS * STACK);
  for (unsigned t = 0; t < count; t++) {
    void** top = (void**)(heald_memory + (size_t)(t + 1) * STACK) - 2;
    *--top = (void*)heald_fiber;  // where the first switch returns to; the stack is then aligned as after a call
    heald_stack[t] = top - 6;
    heald_state[t] = RUNS;
  }
  for (;;) {
    const int waiting = heald_round(count);
    if (waiting <= 0) return waiting;
    for (unsigned t = 0; t < count; t++) heald_state[t] = RUNS;
  }
}
#define HEALD_BLOCK(call) heald_block(blockDim.x * blockDim.y * blockDim.z)
#else
#define HEALD_BLOCK(call) ([&] { \
  for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++) \
    for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++) \
      for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) call; \
  return 0; }())
#endif
