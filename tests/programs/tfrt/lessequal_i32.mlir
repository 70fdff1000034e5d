// A third operand, a chain, is accepted.
// CHECK-LABEL: --- Running 'lessequal':
// CHECK-NEXT: 'lessequal' returned 1,0,1
func.func @lessequal() -> (i1, i1, i1) {
  %ch = tfrt.new.chain
  %a = tfrt.constant.i32 -4
  %b = tfrt.constant.i32 5
  %0 = "tfrt.lessequal.i32"(%a, %b) : (i32, i32) -> i1
  %1 = "tfrt.lessequal.i32"(%b, %a) : (i32, i32) -> i1
  %2 = "tfrt.lessequal.i32"(%a, %a, %ch) : (i32, i32, !tfrt.chain) -> i1
  tfrt.return %0, %1, %2 : i1, i1, i1
}
