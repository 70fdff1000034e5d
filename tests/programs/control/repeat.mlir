// CHECK-LABEL: --- Running 'powers':
// CHECK-NEXT: 'powers' returned 1024
func.func @powers() -> i32 {
  %ten = tfrt.constant.i32 10
  %x = tfrt.constant.i32 1
  %power = tfrt.repeat.i32 %ten, %x : i32 {
    %twice = tfrt.add.i32 %x, %x
    tfrt.return %twice : i32
  }
  tfrt.return %power : i32
}

// More iterations than a block of 32.
// CHECK-LABEL: --- Running 'a_thousand':
// CHECK-NEXT: 'a_thousand' returned 1000
func.func @a_thousand() -> i32 {
  %count = tfrt.constant.i32 1000
  %x = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %0:2 = tfrt.repeat.i32 %count, %x, %one : i32, i32 {
    %sum = tfrt.add.i32 %x, %one
    tfrt.return %sum, %one : i32, i32
  }
  tfrt.return %0#0 : i32
}

// CHECK-LABEL: --- Running 'never':
// CHECK-NEXT: 'never' returned 7
func.func @never() -> i32 {
  %count = tfrt.constant.i32 0
  %x = tfrt.constant.i32 7
  %same = tfrt.repeat.i32 %count, %x : i32 {
    %twice = tfrt.add.i32 %x, %x
    tfrt.return %twice : i32
  }
  tfrt.return %same : i32
}
