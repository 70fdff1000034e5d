// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f(%x: i32) -> i1 {
  // expected-error @+1 {{'ts.equal_shape' op operand #0 must be !ts.shape type, but got 'i32'}}
  %y = "ts.equal_shape"(%x, %x) : (i32, i32) -> i1
  tfrt.return %y : i1
}
