// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i32 {
  // expected-error @+1 {{BEF files cannot encode the 'odd' attribute}}
  %x = "my.kernel"() {odd = {a = 1 : i32}} : () -> i32
  tfrt.return %x : i32
}
