// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 5
func.func @main() -> !tfrt.chain {
  %five = tfrt.constant.i32 5
  %late = "tfrt_test.async_copy.i32"(%five) : (i32) -> i32
  %c0 = "tfrt_test.as_chain"(%late) : (i32) -> !tfrt.chain
  %c1 = tfrt.print.i32 %five, %c0
  tfrt.return %c1 : !tfrt.chain
}
