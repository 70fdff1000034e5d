func.func @later(%a: i32) -> i32 {
  %b = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
  tfrt.return %b : i32
}

func.func @same(%a: i32) -> i32 {
  tfrt.return %a : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 10
func.func @main() -> i32 {
  %five = tfrt.constant.i32 5
  %late = "tfrt_test.async_copy.i32"(%five) : (i32) -> i32
  %cond = tfrt.equal.i32 %late, %five
  %x = tfrt.cond %cond @later @same (%late) : (i32) -> (i32)
  tfrt.return %x : i32
}
