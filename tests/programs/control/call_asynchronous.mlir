func.func @later(%x: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %sum = "tfrt_test.async_add.i32"(%x, %one) : (i32, i32) -> i32
  tfrt.return %sum : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 3
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %two = tfrt.call @later(%one) : (i32) -> (i32)
  %three = tfrt.call @later(%two) : (i32) -> (i32)
  %c1 = tfrt.print.i32 %three, %c0
  tfrt.return %c1 : !tfrt.chain
}
