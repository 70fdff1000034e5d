// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 3
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %sum = tfrt_test.do.async %one, %two : (i32, i32) -> (i32) {
    %x = tfrt.add.i32 %one, %two
    tfrt.return %x : i32
  }
  %c1 = tfrt.print.i32 %sum, %c0
  tfrt.return %c1 : !tfrt.chain
}
