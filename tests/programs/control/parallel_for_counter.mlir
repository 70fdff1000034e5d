// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 835
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 100
  %block = tfrt.constant.i32 7
  %counter = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %done = tfrt.parallel_for.i32 %start to %end fixed %block, %counter : !test.atomic.i32 {
    %c1 = tfrt.new.chain
    %c2 = "tfrt_test.atomic.add.i32"(%counter, %end, %c1) : (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
    tfrt.return %c2 : !tfrt.chain
  }
  %value, %c2 = "tfrt_test.atomic.get.i32"(%counter, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %c3 = tfrt.print.i32 %value, %c2
  tfrt.return %c3 : !tfrt.chain
}
