// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i64 {
  %x = tfrt.constant.i32 1 // expected-note {{prior use here}}
  // expected-error @+1 {{expects different type than prior uses: 'i64' vs 'i32'}}
  tfrt.return %x : i64
}
