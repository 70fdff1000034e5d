// Kernels that start after the cancellation are not called.
// CHECK-LABEL: --- Running 'main':
// CHECK-NOT: int32
// CHECK: 'main' returned <<error: Cancelled>>
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x, %c1 = "tfrt_test.cancel"(%c0) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %c2 = tfrt.print.i32 %x, %c1
  tfrt.return %c2 : !tfrt.chain
}

// The next function has a request of its own.
// CHECK-LABEL: --- Running 'next':
// CHECK-NEXT: 'next' returned 1
func.func @next() -> i32 {
  %one = tfrt.constant.i32 1
  tfrt.return %one : i32
}
