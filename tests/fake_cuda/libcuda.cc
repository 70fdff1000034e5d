// A libcuda.so.1 that does nothing: it notes each call with its arguments, and gives results that tests know. By it the
// calls that heald_cuda.driver makes through cuda-bindings reach C functions with the parameters of cuda.h.
// A device's handle is 100 + its number. A call on handle 666 fails with CUDA_ERROR_ILLEGAL_ADDRESS.

#include <cstdio>
#include <cstdlib>
#include <cstring>

typedef unsigned u32;
typedef unsigned long u64;

static int noted(u64 first) { return first == 666 ? 700 : 0; }
static void print(FILE* file, const char* text) { fprintf(file, " %s", text); }
template <class T> static void print(FILE* file, T number) { fprintf(file, " %lu", (u64)number); }
template <class... Values> static int note(const char* name, Values... values) {
  FILE* file = fopen(getenv("HEALDTEST_CALLS"), "a");
  fputs(name, file);
  (print(file, values), ...);
  fputc('\n', file);
  fclose(file);
  return 0;
}

struct Location { int type, id; };
struct PoolProperties { int allocation, handles; Location location; };
struct Access { Location location; int flags; };
#define CALL(name, parameters, first, ...) \
  extern "C" int name parameters { note(#name, __VA_ARGS__); return noted((u64)(first)); }
#define ASK(name, parameters, result, ...) \
  extern "C" int name parameters { note(#name __VA_OPT__(,) __VA_ARGS__); result; return 0; }

CALL(cuInit, (u32 flags), 0, flags)
ASK(cuDriverGetVersion, (int* out), *out = atoi(getenv("HEALDTEST_DRIVER")))
ASK(cuGetErrorString, (int code, const char** out), *out = "a fault", code)
ASK(cuDeviceGetCount, (int* out), *out = 2)
ASK(cuDeviceGet, (int* out, int number), *out = 100 + number, number)
ASK(cuDeviceGetName, (char* out, int length, int device), strcpy(out, "A GPU"), length, device)
ASK(cuDeviceGetUuid, (char* out, int device), memset(out, device, 16), device)
ASK(cuDeviceGetPCIBusId, (char* out, int length, int device), strcpy(out, "0000:01:00.0"), length, device)
ASK(cuDeviceTotalMem, (u64* out, int device), *out = 1ul << 35, device)
ASK(cuDeviceGetAttribute, (int* out, int attribute, int device), *out = attribute, attribute, device)
ASK(cuDeviceCanAccessPeer, (int* out, int device, int peer), *out = 1, device, peer)
ASK(cuDevicePrimaryCtxRetain, (u64* out, int device), *out = 5, device)
CALL(cuDevicePrimaryCtxRelease, (int device), device, device)
CALL(cuCtxSetCurrent, (u64 context), context, context)
ASK(cuMemPoolCreate, (u64* out, const PoolProperties* p), *out = 7, p->allocation, p->handles, p->location.type,
    p->location.id)
CALL(cuMemPoolSetAttribute, (u64 pool, int attribute, u64* value), pool, pool, attribute, *value)
CALL(cuMemPoolSetAccess, (u64 pool, const Access* a, u64 count), pool, pool, a->location.type, a->location.id, a->flags,
     count)
CALL(cuMemPoolDestroy, (u64 pool), pool, pool)
CALL(cuMemPoolTrimTo, (u64 pool, u64 kept), pool, pool, kept)
ASK(cuMemGetInfo, (u64* unused, u64* all), (*unused = 1000, *all = 2000))
ASK(cuMemAllocFromPoolAsync, (u64* out, u64 size, u64 pool, u64 stream), *out = 0x7000, size, pool, stream)
CALL(cuMemFreeAsync, (u64 address, u64 stream), stream, address, stream)
ASK(cuMemHostAlloc, (u64* out, u64 size, u32 flags), *out = 0x8000, size, flags)
CALL(cuMemFreeHost, (u64 address), address, address)
CALL(cuMemcpyAsync, (u64 target, u64 source, u64 size, u64 stream), stream, target, source, size, stream)
ASK(cuStreamCreate, (u64* out, u32 flags), *out = 21, flags)
CALL(cuStreamDestroy, (u64 stream), stream, stream)
CALL(cuStreamWaitEvent, (u64 stream, u64 event, u32 flags), stream, stream, event, flags)
CALL(cuStreamBeginCapture, (u64 stream, int mode), stream, stream, mode)
ASK(cuStreamEndCapture, (u64 stream, u64* out), *out = 31, stream)
ASK(cuEventCreate, (u64* out, u32 flags), *out = 22, flags)
CALL(cuEventDestroy, (u64 event), event, event)
CALL(cuEventRecord, (u64 event, u64 stream), stream, event, stream)
CALL(cuEventSynchronize, (u64 event), event, event)
ASK(cuEventElapsedTime, (float* out, u64 start, u64 end), *out = 1500, start, end)
ASK(cuGraphInstantiateWithFlags, (u64* out, u64 graph, u64 flags), *out = 32, graph, flags)
CALL(cuGraphDestroy, (u64 graph), graph, graph)
CALL(cuGraphExecDestroy, (u64 graph), graph, graph)
CALL(cuGraphLaunch, (u64 graph, u64 stream), stream, graph, stream)
ASK(cuModuleLoadData, (u64* out, const char* image), *out = 41, image)
ASK(cuModuleGetFunction, (u64* out, u64 module, const char* name), *out = 42, module, name)
ASK(cuPointerGetAttribute, (int* out, int attribute, u64 address), *out = 1, attribute, address)  // the device
ASK(cuPointerGetAttributes, (u32 count, int* attributes, void** out, u64 address), *(int*)out[0] = 2, address)  // its kind
CALL(cuLaunchKernel, (u64 kernel, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, u64 stream, void** arguments,
                      void** extra), stream, kernel, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)

#define NAMED(name) if (!strcmp(symbol, #name)) *out = (void*)name;
extern "C" int cuGetProcAddress_v2(const char* symbol, void** out, int, u64, int* status) {
  *out = nullptr;
  NAMED(cuInit) NAMED(cuDriverGetVersion) NAMED(cuGetErrorString) NAMED(cuDeviceGetCount) NAMED(cuDeviceGet)
  NAMED(cuDeviceGetName) NAMED(cuDeviceGetUuid) NAMED(cuDeviceGetPCIBusId) NAMED(cuDeviceTotalMem)
  NAMED(cuDeviceGetAttribute) NAMED(cuDeviceCanAccessPeer) NAMED(cuDevicePrimaryCtxRetain)
  NAMED(cuDevicePrimaryCtxRelease) NAMED(cuCtxSetCurrent) NAMED(cuMemPoolCreate) NAMED(cuMemPoolSetAttribute)
  NAMED(cuMemPoolSetAccess) NAMED(cuMemPoolDestroy) NAMED(cuMemPoolTrimTo) NAMED(cuMemGetInfo)
  NAMED(cuMemAllocFromPoolAsync) NAMED(cuMemFreeAsync) NAMED(cuMemHostAlloc) NAMED(cuMemFreeHost) NAMED(cuMemcpyAsync)
  NAMED(cuStreamCreate) NAMED(cuStreamDestroy) NAMED(cuStreamWaitEvent) NAMED(cuStreamBeginCapture)
  NAMED(cuStreamEndCapture) NAMED(cuEventCreate) NAMED(cuEventDestroy) NAMED(cuEventRecord) NAMED(cuEventSynchronize)
  NAMED(cuEventElapsedTime) NAMED(cuGraphInstantiateWithFlags) NAMED(cuGraphDestroy) NAMED(cuGraphExecDestroy)
  NAMED(cuGraphLaunch) NAMED(cuModuleLoadData) NAMED(cuModuleGetFunction) NAMED(cuLaunchKernel)
  NAMED(cuPointerGetAttribute) NAMED(cuPointerGetAttributes)
  if (status) *status = *out ? 0 : 1;
  return 0;
}
