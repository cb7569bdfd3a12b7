output "api_url" {
  description = "The value for TURBO_API."
  value       = aws_cloudformation_stack.larder.outputs["ApiUrl"]
}

output "version" {
  description = "The version of Larder that is deployed."
  value       = aws_cloudformation_stack.larder.outputs["Version"]
}

output "outputs" {
  description = "All outputs of the stack, such as the targets of DNS records and the names of tables."
  value       = aws_cloudformation_stack.larder.outputs
}
