-- placeholder
return {}
