// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 3
func.func @main() -> i32 {
  %cond = tfrt.constant.i1 true
  %a = tfrt.constant.i32 3
  %b = tfrt.constant.i32 4
  %x = tfrt.if %cond, %a, %b : (i32, i32) -> (i32) {
    tfrt.return %a : i32
  } else {
    %sum = tfrt.add.i32 %a, %b
    tfrt.return %sum : i32
  }
  tfrt.return %x : i32
}
