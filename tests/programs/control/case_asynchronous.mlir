func.func @first(%a: i32) -> i32 {
  tfrt.return %a : i32
}

func.func @later(%a: i32) -> i32 {
  %b = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
  tfrt.return %b : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 2
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  %late = "tfrt_test.async_copy.i32"(%one) : (i32) -> i32
  %x = tfrt.case %late [@first, @later] (%one) : (i32) -> (i32)
  tfrt.return %x : i32
}
