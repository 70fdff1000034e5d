// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i32 {
  // expected-error @+1 {{'ts.build_shape' op result #0 must be !ts.shape type}}
  %x = "ts.build_shape"() {value = [1 : i64]} : () -> i32
  tfrt.return %x : i32
}
