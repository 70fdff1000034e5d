// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 4
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %four = tfrt.constant.i32 4
  %late = "tfrt_test.async_copy.i32"(%one) : (i32) -> i32
  %cond = tfrt.equal.i32 %late, %one
  %x = tfrt.if %cond, %four : (i32) -> (i32) {
    tfrt.return %four : i32
  } else {
    %five = tfrt.add.i32 %four, %four
    tfrt.return %five : i32
  }
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return %c1 : !tfrt.chain
}
