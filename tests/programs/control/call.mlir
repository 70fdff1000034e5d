func.func @twice(%x: i32) -> i32 {
  %sum = tfrt.add.i32 %x, %x
  tfrt.return %sum : i32
}

func.func @swapped(%a: i32, %b: i64) -> (i64, i32) {
  tfrt.return %b, %a : i64, i32
}

// CHECK: --- Not running 'twice' because it has arguments.
// CHECK: --- Not running 'swapped' because it has arguments.
// CHECK-LABEL: --- Running 'calls':
// CHECK-NEXT: 'calls' returned 7,12
func.func @calls() -> (i64, i32) {
  %three = tfrt.constant.i32 3
  %seven = tfrt.constant.i64 7
  %six = tfrt.call @twice(%three) : (i32) -> (i32)
  %twelve = tfrt.call @twice(%six) : (i32) -> (i32)
  %0:2 = tfrt.call @swapped(%twelve, %seven) : (i32, i64) -> (i64, i32)
  tfrt.return %0#0, %0#1 : i64, i32
}
