// A recursion ends through tfrt.if.
func.func @sum_down(%n: i32) -> i32 {
  %zero = tfrt.constant.i32 0
  %ends = "tfrt.lessequal.i32"(%n, %zero) : (i32, i32) -> i1
  %sum = tfrt.if %ends, %n, %zero : (i32, i32) -> (i32) {
    tfrt.return %zero : i32
  } else {
    %minus_one = tfrt.constant.i32 -1
    %less = tfrt.add.i32 %n, %minus_one
    %rest = tfrt.call @sum_down(%less) : (i32) -> (i32)
    %all = tfrt.add.i32 %n, %rest
    tfrt.return %all : i32
  }
  tfrt.return %sum : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 55
func.func @main() -> i32 {
  %ten = tfrt.constant.i32 10
  %sum = tfrt.call @sum_down(%ten) : (i32) -> (i32)
  tfrt.return %sum : i32
}
