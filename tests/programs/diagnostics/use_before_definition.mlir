// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i32 {
  // expected-error @+1 {{operand #0 does not dominate this use}}
  %y = tfrt.add.i32 %x, %x
  %x = tfrt.constant.i32 1 // expected-note {{operand defined here (op in the same block)}}
  tfrt.return %y : i32
}
