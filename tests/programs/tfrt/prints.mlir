// The printing of every scalar type.
// CHECK-LABEL: --- Running 'prints':
// CHECK-NEXT: int1 = 1
// CHECK-NEXT: int1 = 0
// CHECK-NEXT: int32 = -42
// CHECK-NEXT: int64 = 4294967296
// CHECK-NEXT: f32 = 1.500000
// CHECK-NEXT: f64 = -0.001000
func.func @prints() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  %i = tfrt.constant.i32 -42
  %l = tfrt.constant.i64 4294967296
  %f = tfrt.constant.f32 1.5
  %d = tfrt.constant.f64 -0.001
  %c1 = tfrt.print.i1 %yes, %c0
  %c2 = tfrt.print.i1 %no, %c1
  %c3 = tfrt.print.i32 %i, %c2
  %c4 = tfrt.print.i64 %l, %c3
  %c5 = tfrt.print.f32 %f, %c4
  %c6 = tfrt.print.f64 %d, %c5
  tfrt.return %c6 : !tfrt.chain
}
