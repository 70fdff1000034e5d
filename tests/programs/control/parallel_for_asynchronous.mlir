// A body that returns a chain is waited for.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 10
func.func @main() -> !tfrt.chain {
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 10
  %block = tfrt.constant.i32 1
  %counter = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %done = tfrt.parallel_for.i32 %start to %end fixed %block, %counter : !test.atomic.i32 {
    %late = "tfrt_test.async_copy.i32"(%start) : (i32) -> i32
    %c1 = "tfrt_test.as_chain"(%late) : (i32) -> !tfrt.chain
    %c2 = "tfrt_test.atomic.inc.i32"(%counter, %c1) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
    tfrt.return %c2 : !tfrt.chain
  }
  %value, %c1 = "tfrt_test.atomic.get.i32"(%counter, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %c2 = tfrt.print.i32 %value, %c1
  tfrt.return %c2 : !tfrt.chain
}
