// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 6
func.func @main() -> i32 {
  %c0 = tfrt.new.chain
  %five = tfrt.constant.i32 5
  %a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %c1 = "tfrt_test.atomic.inc.i32"(%a, %c0) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.atomic.add.i32"(%a, %five, %c1) : (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
  %x, %c3 = "tfrt_test.atomic.get.i32"(%a, %c2) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %x : i32
}
