func.func @add_size(%start: i32, %end: i32, %counter: !test.atomic.i32) -> !tfrt.chain {
  %ch = tfrt.new.chain
  %done = "tfrt_test.atomic.inc.i32"(%counter, %ch) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// 15 blocks of 7 integers or fewer.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 15
func.func @main() -> !tfrt.chain {
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 100
  %block = tfrt.constant.i32 7
  %counter = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %done = tfrt.parallel_call.i32 %start to %end fixed %block @add_size(%counter) : !test.atomic.i32
  %value, %c1 = "tfrt_test.atomic.get.i32"(%counter, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %c2 = tfrt.print.i32 %value, %c1
  tfrt.return %c2 : !tfrt.chain
}
