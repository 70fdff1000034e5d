// RUN: bef_executor -print_error_code -work_queue_type mstd:2

// CHECK: Multi-threaded C++ work queue (2 threads, 256 blocking threads) work queue.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened, code: INTERNAL>>
func.func @main() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{runtime error: something bad happened}}
  "tfrt.return"(%x) : (i32) -> ()
}
